// Write PostgreSQL, with the schema that standard input has, into a file that PGlite loads:
//     node playground_snapshot.mjs FOLDER_OF_PGLITE SNAPSHOT < schema.sql

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// Node would print the line of the error, and PGlite is one long line.
process.on("uncaughtException", (error) => {
  console.error(`error: the schema cannot be installed in PGlite: ${error.message}`);
  process.exit(1);
});

const [folder, snapshot] = process.argv.slice(2);
const { PGlite } = await import(pathToFileURL(`${folder}/index.js`));
const postgres = await PGlite.create();
await postgres.exec(readFileSync(0, "utf8"));
// The snapshot then has no log of changes to read again.
await postgres.exec("VACUUM ANALYZE");
await postgres.exec("CHECKPOINT");
writeFileSync(snapshot, Buffer.from(await (await postgres.dumpDataDir("gzip")).arrayBuffer()));
await postgres.close();
