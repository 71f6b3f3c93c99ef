// The database of the page: sends statements to the worker, and waits for their rows.

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let last = 0;

worker.onmessage = ({ data: { id, result, error } }) => {
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  if (error) reject(new DatabaseError(error));
  else resolve(result);
};

// The file of the worker, or one that it imports, cannot be read.
worker.onerror = () => {
  for (const { reject } of waiting.values()) reject(new Error("the files of PostgreSQL cannot be read"));
  waiting.clear();
};

export class DatabaseError extends Error {
  constructor({ message, detail, hint }) {
    super([message, detail, hint].filter(Boolean).join("\n"));
  }
}

function send(call, ...args) {
  const id = ++last;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, call, args });
  });
}

// Return the rows of one statement, whose parameters are $1, $2 and so on.
export async function query(statement, parameters = []) {
  return (await send("query", statement, parameters)).rows;
}

// Return the fields and rows of each statement of a script.
export function run(script) {
  return send("exec", script);
}
