// PostgreSQL in a thread of its own, so that a long statement does not stop the page.
//
// A message is {id, call, args}: a method of PGlite. The answer is {id, result} or {id, error}.

import { PGlite } from "./pglite/index.js";

const started = start();

async function start() {
  const answer = await fetch(new URL("snapshot.bin", import.meta.url));
  if (!answer.ok) throw new Error(`the snapshot of PostgreSQL is missing: status ${answer.status}`);
  return PGlite.create({ loadDataDir: new Blob([await answer.arrayBuffer()], { type: "application/gzip" }) });
}

onmessage = async ({ data: { id, call, args } }) => {
  try {
    postMessage({ id, result: await (await started)[call](...args) });
  } catch (error) {
    const { message, detail, hint } = error;
    postMessage({ id, error: { message, detail, hint } });
  }
};
