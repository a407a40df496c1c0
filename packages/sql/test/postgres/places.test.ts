import { expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, chunk, done, keyOf, making } from "./given.ts";

const database = useDatabase();
const context = { ...alice, contextId: "c" };

test("a conversation has places for 2^53 messages, and only its messages take them, any number in one call", async () => {
  const schema = "places";
  const store = await postgresStore({ database: database().url, schema });
  try {
    // The value after four years with a thousand transactions per second.
    await database().run(`SELECT setval('${schema}.places', 137438953472), setval('${schema}.said', 137438953472)`);
    const ids = Array.from({ length: 2500 }, (_, at) => `m${at}`);
    const effects = ids.map((messageId) => {
      const json = JSON.stringify({ messageId, role: "ROLE_AGENT", parts: [{ text: "x" }] });
      return { effect: "contextMessage", time: 1, json } as const;
    });
    await store.append([{ context, effects }]);
    await store.append([making("t")]);
    const { entries } = await store.conversation(context, { limit: 5000 });
    expect(entries.map((entry) => ("message" in entry ? entry.message.messageId : ""))).toEqual([...ids, "t-m"]);
    const said = async (): Promise<unknown> => (await database().run(`SELECT last_value FROM ${schema}.said`)).rows[0];
    const before = await said();
    await store.append([{ task: keyOf("t"), records: [chunk("t", "x", false)] }]);
    await store.append([{ task: keyOf("t"), records: [done("t")] }]);
    expect(await said()).toEqual(before);
  } finally {
    await store.close();
  }
});
