// The typed texts: their words, shingles, buckets, candidates, similarities, pairs and clusters.

import { query, run } from "./database.js";
import { byId, count, element, showStatements, table } from "./elements.js";
import * as sql from "./statements.js";

const MOST_TEXTS = 30;
const MOST_CHARACTERS = 20_000;
const PAUSE = 300; // milliseconds after the last key

let timer;
let newest = 0;
let running = Promise.resolve();

export async function startTexts() {
  await run(sql.CREATE_TYPED);
  byId("texts").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(compare, PAUSE);
  });
  byId("texts").addEventListener("submit", (event) => event.preventDefault());
  await compare();
}

// Compare after the comparison that is under way; one that a newer one follows is left out.
function compare() {
  const number = ++newest;
  running = running.then(() => (number === newest ? compareNow() : undefined));
  return running;
}

async function compareNow() {
  const { texts, omitted } = typedTexts();
  const shingle = byId("shingle").value;
  try {
    const results = await read(texts, shingle, byId("threshold").value, byId("recall").value);
    show(results, omitted);
  } catch (error) {
    byId("summary").textContent = error.message;
    for (const id of ["step-list", "pair-table", "cluster-list"]) byId(id).replaceChildren();
  }
}

function typedTexts() {
  const typed = byId("typed").value;
  const lines = typed.slice(0, MOST_CHARACTERS).split("\n");
  const texts = lines.map((line) => line.trim()).filter(Boolean);
  const isCut = typed.length > MOST_CHARACTERS || texts.length > MOST_TEXTS;
  const limits = `${MOST_TEXTS} texts and ${MOST_CHARACTERS.toLocaleString("en")} characters`;
  return { texts: texts.slice(0, MOST_TEXTS), omitted: isCut ? ` Only the first ${limits} are read.` : "" };
}

async function read(texts, shingle, threshold, recall) {
  showStatements("steps", sql.STEPS);
  showStatements("pairs", sql.CANDIDATES, sql.PAIRS, sql.SIMILARITIES);
  showStatements("clusters", sql.CLUSTERS);
  await run(sql.EMPTY_TYPED);
  await query(sql.TYPE, [texts]);
  await query(sql.DROP);
  await query(sql.CREATE, [shingle, threshold, recall]);
  await query(sql.ADD);
  const steps = await query(sql.STEPS);
  const sketches = await query(sql.SKETCHES);
  return {
    steps: steps.map((step, place) => ({ ...step, ...sketches[place] })),
    candidates: await query(sql.CANDIDATES),
    pairs: await query(sql.PAIRS),
    similarities: await query(sql.SIMILARITIES),
    clusters: await query(sql.CLUSTERS),
  };
}

function show({ steps, candidates, similarities, pairs, clusters }, omitted) {
  byId("step-list").replaceChildren(...steps.map((step) => stepsOf(step, steps)));
  byId("pair-table").replaceChildren(pairTable(similarities, candidates, pairs));
  byId("cluster-list").replaceChildren(clusterList(clusters, steps));
  const groups = new Set(clusters.map(({ cluster }) => cluster)).size;
  byId("summary").textContent =
    `${count(steps.length, "text")}: ${count(candidates.length, "candidate")} of ${similarities.length} possible, ` +
    `${count(pairs.length, "pair")}, ${count(groups, "cluster")}.${omitted}`;
}

function stepsOf({ id, body, words, shingles, buckets }, steps) {
  const others = (name, value) =>
    steps.filter((other) => other.id !== id && other[name].includes(value)).map((other) => other.id);
  const items = (name, values) =>
    values.map((value) => {
      const ids = others(name, value);
      return element("li", ids.length ? { class: "shared" } : {}, ids.length ? `${value} (also ${ids.join(", ")})` : `${value}`);
    });
  const list = (title, name, values) => [
    element("h4", {}, `${title}: ${values.length}`),
    element("ul", { class: "values" }, ...items(name, values)),
  ];
  const isOpen = byId(`step-${id}`)?.open ?? id === 1;
  return element(
    "details",
    { id: `step-${id}`, ...(isOpen ? { open: "" } : {}) },
    element("summary", {}, `${id}. ${body}`),
    element("h4", {}, `Words: ${words.length}`),
    element("p", {}, words.join(" ")),
    ...list("Shingles", "shingles", shingles),
    ...list("Buckets", "buckets", buckets),
  );
}

function pairTable(similarities, candidates, pairs) {
  const name = (a, b) => [Number(a), Number(b)].sort((x, y) => x - y).join(" and ");
  const shared = new Map(candidates.map((row) => [name(row.a, row.b), row.shared]));
  const matches = new Set(pairs.map((row) => name(row.a, row.b)));
  const rows = similarities
    .map(({ a, b, similarity }) => ({ texts: name(a, b), similarity, buckets: shared.get(name(a, b)) ?? 0 }))
    .filter((row) => row.similarity > 0 || row.buckets > 0)
    .sort((x, y) => y.similarity - x.similarity);
  const verdict = (row) => (matches.has(row.texts) ? "pair" : row.buckets ? "below the threshold" : "not compared");
  return table(
    "Texts that have a shingle or a bucket in common",
    ["Texts", "Shared buckets", "Similarity", "Verdict"],
    rows.map((row) => [row.texts, `${row.buckets}`, row.similarity.toFixed(3), verdict(row)]),
  );
}

function clusterList(rows, steps) {
  if (!rows.length) return element("p", {}, "No text is in a cluster.");
  const numbers = [...new Set(rows.map((row) => row.cluster))];
  const items = numbers.map((number) => {
    const cluster = rows.filter((row) => row.cluster === number);
    const ids = cluster.map((row) => Number(row.key)).sort((x, y) => x - y);
    const texts = ids.map((id) => element("li", {}, `${id}. ${steps[id - 1].body}`));
    const title = `${count(ids.length, "text")}, whose weakest pair has similarity ${cluster[0].weakest.toFixed(3)}`;
    return element("li", {}, title, element("ul", {}, ...texts));
  });
  return element("ol", {}, ...items);
}
