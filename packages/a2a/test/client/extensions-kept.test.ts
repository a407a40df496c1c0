import { expect, test } from "vitest";
import * as z from "zod";
import type { Client } from "../../src/client/index.ts";
import { defineExtension } from "../../src/extensions/index.ts";
import { type Interceptor, mapItems, TextPayload } from "../../src/protocol/index.ts";
import { agentOf, serving } from "../../../server/test/delegate/support.ts";

/** Tests that a client's extensions stay active in all uses of the client. */

const stamp = defineExtension({
  uri: "https://example.com/extensions/stamp/v1",
  kind: "data",
  metadata: { message: { at: z.string() }, artifact: { at: z.string() } },
});

/** An agent that reports the active extensions, and adds a time if `stamp` is active. */
const stamping = agentOf(
  async function* (turn) {
    yield turn.artifact({
      parts: [{ text: turn.extensions.join() }],
      // The type of `turn` does not include the extension.
      metadata: turn.extensions.includes(stamp.uri) ? { [`${stamp.uri}/at`]: "noon" } : {},
    });
  },
  { extensions: [stamp] },
);

test("in conversations, waits, lists and downloads", async () => {
  const client = (await serving(stamping).client({ extensions: [stamp] })) as Client<typeof stamp>;
  const conversation = client.conversation();
  const { task } = await conversation.send("One");
  expect(task?.ext(stamp)?.artifact.at).toBe("noon");
  const seen: unknown[] = [];
  for await (const event of conversation.stream("Two")) seen.push(event.ext(stamp)?.artifact.at);
  expect(seen).toContain("noon");
  expect(seen).not.toHaveLength(0);
  const id = task?.id ?? "";
  expect((await client.waitFor(id)).ext(stamp)?.artifact.at).toBe("noon");
  expect(
    (await client.listTasks({ includeArtifacts: true })).tasks.map((each) => each.ext(stamp)?.artifact.at),
  ).toEqual(["noon", "noon"]);
  const texts: string[] = [];
  for await (const file of client.download({ taskId: id })) texts.push(await file.text());
  expect(texts).toEqual([stamp.uri]);
});

test("in delegations (turn.delegate)", async () => {
  const below = serving(stamping);
  const client = await below.client({ extensions: [stamp] });
  const above = serving(
    agentOf(async function* (turn) {
      const { text, artifacts } = yield* turn.delegate(client, turn.text, { artifacts: false });
      yield turn.completed(`${text} ${JSON.stringify(artifacts[0]?.metadata?.[`${stamp.uri}/at`])}`);
    }),
  );
  const { task } = await (await above.client()).sendMessage("Go");
  expect(task?.status.message?.parts).toEqual([{ text: `${stamp.uri} "noon"` }]);
});

test("in answers that an interceptor created from text, whose values are frozen", async () => {
  const frozen: Interceptor = (next) => ({
    async call(operation, request, context) {
      const reply = await next.call(operation, request, context);
      return { ...reply, payload: new TextPayload(reply.payload.json) };
    },
    async stream(operation, request, context) {
      const reply = await next.stream(operation, request, context);
      const change = (item: Parameters<Parameters<typeof mapItems>[1]>[0]): typeof item => ({
        ...item,
        payload: new TextPayload(item.payload.json),
      });
      return { ...reply, batches: mapItems(reply.batches, change) };
    },
  });
  const server = serving(stamping);
  const made = await server.client({ extensions: [stamp], interceptors: [frozen] });
  const client = made as Client<typeof stamp>;
  const answer = await client.sendMessage("Go");
  expect([answer.ext(stamp)?.artifact.at, answer.task?.ext(stamp)?.artifact.at]).toEqual(["noon", "noon"]);
  expect((await client.getTask(answer.task?.id ?? "")).ext(stamp)?.artifact.at).toBe("noon");
  expect((await client.listTasks({ includeArtifacts: true })).tasks[0]?.ext(stamp)?.artifact.at).toBe("noon");
  for await (const event of client.sendStreamingMessage("Go")) expect(event.ext(stamp)).toBeDefined();
});

test("but not if the client does not request the extension", async () => {
  const client = await serving(stamping).client();
  const { task } = await client.sendMessage("Go");
  expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "" }]);
});
