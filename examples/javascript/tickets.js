// Tickets that find their near-duplicates, and offers that stay unique: on a server, or in this process.

import { readFileSync } from "node:fs";

import { createPgConfig } from "@electric-sql/pglite/node-postgres";
import pg from "pg";

export async function connect(address) {
  const client = new pg.Client(address ?? createPgConfig());
  await client.connect();
  return client;
}

export async function install(client) {
  await client.query(readFileSync("textsim.sql", "utf8"));
}

export async function createTickets(client) {
  await client.query(`
    CREATE TABLE ticket (id int PRIMARY KEY, body text NOT NULL);
    SELECT textsim.create_corpus('tickets', shingle => 'word:2', threshold => 0.6);
    SELECT textsim.attach('tickets', 'ticket', 'id', 'body', mode => 'inline')`);
}

export async function ticketsLike(client, text) {
  const { rows } = await client.query(
    `SELECT t.id, t.body, m.similarity
    FROM textsim.matches('tickets', $1) m JOIN ticket t ON t.id = m.key::int
    ORDER BY m.similarity DESC`,
    [text],
  );
  return rows;
}

export async function createOffers(client) {
  await client.query(`
    CREATE TABLE offer (id int PRIMARY KEY, body text NOT NULL);
    SELECT textsim.create_corpus('offers', threshold => 0.6, recall => 1, is_unique => true);
    SELECT textsim.attach('offers', 'offer', 'id', 'body')`);
}

export async function insertOffer(client, id, body) {
  try {
    await client.query("INSERT INTO offer VALUES ($1, $2)", [id, body]);
    return "stored";
  } catch (error) {
    if (error.code === "23505" && error.constraint === "offers") return error.detail;
    throw error;
  }
}
