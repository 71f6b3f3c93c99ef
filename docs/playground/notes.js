// The table of notes, which stays unique: each note is a form that saves or removes its row.

import { query, run } from "./database.js";
import { byId, element, showStatements } from "./elements.js";
import * as sql from "./statements.js";

const refusal = element("p", { class: "refusal", role: "alert" });

export async function startNotes() {
  showStatements("unique", sql.UNIQUE);
  await run(sql.UNIQUE);
  await run(sql.FIRST_NOTES);
  await showNotes();
}

async function showNotes() {
  const rows = await query(sql.NOTES);
  byId("note-list").replaceChildren(...rows.map(noteForm), newNoteForm());
}

function noteForm({ id, body }) {
  const input = element("input", { id: `note-${id}`, value: body, autocomplete: "off" });
  return element(
    "form",
    { class: "note", submit: (event) => write(event, `note-${id}`, sql.CHANGE_NOTE, [id, input.value]) },
    element("label", { for: input.id }, `Note ${id}`),
    input,
    element("button", { class: "md-button" }, "Save"),
    element(
      "button",
      { class: "md-button", type: "button", click: (event) => write(event, "note-new", sql.REMOVE_NOTE, [id]) },
      "Remove",
    ),
  );
}

function newNoteForm() {
  const input = element("input", { id: "note-new", autocomplete: "off", value: "Anna moved to Kiel in May, and works in the harbour office!" });
  return element(
    "form",
    { class: "note", submit: (event) => write(event, "note-new", sql.NEW_NOTE, [input.value]) },
    element("label", { for: input.id }, "New note"),
    input,
    element("button", { class: "md-button" }, "Add"),
  );
}

// Run a statement. If PostgreSQL refuses it, its message stands below the form.
async function write(event, focused, statement, parameters) {
  event.preventDefault();
  const form = event.target.closest("form");
  try {
    await query(statement, parameters);
    await showNotes();
    byId(focused).focus();
  } catch (error) {
    form.after(refusal);
    refusal.textContent = error.message;
  }
}
