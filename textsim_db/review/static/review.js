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

const handle = document.querySelector("#threshold");
if (handle) {
  const effect = document.querySelector("#effect");
  let waiting = 0;
  handle.addEventListener("input", () => {
    const threshold = Number(handle.value);
    document.querySelector("output[for=threshold]").textContent = threshold.toFixed(2);
    for (const bar of document.querySelectorAll("rect[data-step]")) {
      bar.classList.toggle("below", Number(bar.dataset.step) < Math.round(threshold * 100));
    }
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const response = await fetch(`/effect?threshold=${threshold}`);
      // The server escapes every text of the fragment.
      if (response.ok && Number(handle.value) === threshold) effect.innerHTML = await response.text();
    }, 60);
  });
}
