// Elements of the page. Texts are set as texts, so no text becomes a tag.

export const byId = (id) => document.getElementById(id);

// Make an element; an attribute whose value is a function listens to the event of its name.
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(attribute, value);
    else node.setAttribute(attribute, value);
  }
  node.append(...children);
  return node;
}

export function table(caption, headings, rows) {
  const head = headings.map((heading) => element("th", { scope: "col" }, heading));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body),
  );
}

export const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

export function showStatements(place, ...statements) {
  document.querySelector(`[data-statement=${place}]`).textContent = statements.join("\n");
}
