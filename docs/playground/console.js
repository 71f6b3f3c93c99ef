// Any statement of the reader: its rows, or its error.

import { run } from "./database.js";
import { byId, element, table } from "./elements.js";

const MOST_ROWS = 200;

export function startConsole() {
  byId("console").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("result").replaceChildren(...(await results(byId("statement").value)));
  });
}

async function results(script) {
  try {
    return (await run(script)).map(resultTable);
  } catch (error) {
    return [element("p", {}, error.message)];
  } finally {
    // The statements of the page need a transaction of their own.
    await run("ROLLBACK");
  }
}

function resultTable({ fields, rows, affectedRows }) {
  if (!fields.length) return element("p", {}, `Done; rows changed: ${affectedRows ?? 0}`);
  const shown = rows.slice(0, MOST_ROWS).map((row) => fields.map(({ name }) => text(row[name])));
  const caption = rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${rows.length} rows` : `Rows: ${rows.length}`;
  return table(caption, fields.map(({ name }) => name), shown);
}

function text(value) {
  if (value === null) return "NULL";
  const plain = (_, item) => (typeof item === "bigint" ? `${item}` : item);
  return typeof value === "object" ? JSON.stringify(value, plain) : `${value}`;
}
