import assert from "node:assert/strict";
import test from "node:test";

import { connect, createOffers, createTickets, insertOffer, install, ticketsLike } from "./tickets.js";

const address = process.env.DATABASE_URL;
const servers = {
  "PGlite": {},
  "a server": { address, skip: !address && "DATABASE_URL has no address" },
};

for (const [name, { address, skip }] of Object.entries(servers)) {
  test(name, { skip }, async () => {
    const client = await connect(address);
    try {
      await install(client);
      await createTickets(client);
      await client.query(`INSERT INTO ticket VALUES
        (1, 'The app crashes when I upload a photo from my phone'),
        (2, 'How do I change my password?'),
        (3, 'App crashes when I upload a photo from my phone!!')`);
      const like = await ticketsLike(client, "the app crashes when I upload a photo");
      assert.deepEqual(like.map(({ id, similarity }) => [id, similarity]), [[1, 0.7], [3, 0.6]]);

      await createOffers(client);
      assert.equal(await insertOffer(client, 1, "Garden bench of solid oak with two cushions"), "stored");
      assert.match(await insertOffer(client, 2, "Garden bench of solid oak with two cushions!"), /^Key \(1\) has similarity 1;/);
      assert.equal(await insertOffer(client, 2, "Wooden train with forty pieces of track"), "stored");
      await assert.rejects(insertOffer(client, 3, null), { code: "23502" });
    } finally {
      await client.end();
    }
  });
}
