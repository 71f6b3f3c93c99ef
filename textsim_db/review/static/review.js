// Keys press the button or link that names them; everything works without this script.
"use strict";

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=range]):not([type=checkbox]), textarea, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  for (const element of document.querySelectorAll("[data-key]")) {
    if (element.dataset.key === event.key.toLowerCase()) {
      event.preventDefault();
      element.click();
      return;
    }
  }
});

// A verdict is sent once, however often its key is pressed.
for (const form of document.querySelectorAll("form[method=post]")) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
}

// Replaces the contents of an element by a fragment; the server escapes every text in it.
async function load(element, address, isWanted = () => true) {
  const response = await fetch(address);
  const text = await response.text();
  if (response.ok && isWanted()) element.innerHTML = text;
}

const handle = document.querySelector("#threshold");
if (handle) {
  const effects = JSON.parse(handle.dataset.effects);
  const names = ["pairs", "clusters", "removals"];
  let waiting = 0;
  handle.addEventListener("input", () => {
    const step = Math.round(Number(handle.value) * 100);
    const threshold = (step / 100).toFixed(2);
    document.querySelector("#at").textContent = threshold;
    document.querySelector("#to-clusters").href = `clusters?threshold=${threshold}`;
    document.querySelector("#to-pairs").href = `pairs?around=${threshold}`;
    for (const [i, name] of names.entries()) {
      const shown = document.getElementById(name);
      if (shown) shown.textContent = effects[step][i].toLocaleString("en");
    }
    for (const bar of document.querySelectorAll("rect[data-step]")) {
      bar.classList.toggle("below", Number(bar.dataset.step) < step);
    }
    clearTimeout(waiting);
    const isWanted = () => Math.round(Number(handle.value) * 100) === step;
    waiting = setTimeout(load, 60, document.querySelector("#effect"), `effect?threshold=${threshold}`, isWanted);
  });
}

const progress = document.querySelector("#progress");
if (progress) {
  const look = async () => {
    const state = await (await fetch("progress")).json();
    document.querySelector("#read").textContent = state.pairs.toLocaleString("en");
    if (state.complete) {
      progress.firstChild.textContent = "All pairs are read. This page shows those of some documents. ";
      progress.querySelector("a").textContent = "Show all";
      progress.replaceChildren(progress.firstChild, progress.querySelector("a"));
    } else {
      setTimeout(look, 1000);
    }
  };
  setTimeout(look, 1000);
}
