// The page docs/playground.md: starts PostgreSQL, and then each part of the page.

import { startConsole } from "./console.js";
import { byId } from "./elements.js";
import { startNotes } from "./notes.js";
import { startTexts } from "./texts.js";

const opened = performance.now();
try {
  await startTexts();
  byId("status").textContent = `PostgreSQL answered after ${((performance.now() - opened) / 1000).toFixed(1)} s.`;
  await startNotes();
  startConsole();
  byId("status").dataset.ready = "";
} catch (error) {
  byId("status").textContent = `PostgreSQL does not start: ${error.message}`;
}
