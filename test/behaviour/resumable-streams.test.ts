import { describe, expect, test } from "vitest";
import { connect } from "@parley/a2a";
import { resumableStreams } from "@parley/a2a/extensions";
import { defineAgent, memoryStore } from "@parley/server";
import { resumeExtension } from "@parley/a2a/internal/protocol/index";
import { call, eventsOf, plainBindings, served, taskIn } from "./plain-client.ts";

/* Tests the numbered promises of packages/a2a/src/extensions/resumable-streams/README.md with plain `fetch`. */

const card = { name: "Counter", description: "Counts", version: "1.0.0", skills: [] };
const words = ["one", "two", "three", "four"];
const counter = defineAgent({
  ...card,
  async *onMessage(turn) {
    for (const word of words) yield turn.working(word);
  },
});

/** Creates a promise that a test resolves. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** Returns the text of each event, or its state if it has no text. */
const said = (events: readonly { readonly json: string }[]): readonly string[] =>
  events.map(({ json }) => words.find((word) => json.includes(`"${word}"`)) ?? (taskIn(json) ? "task" : "status"));

describe.each(plainBindings)("over $name", ({ stream, subscribe, send }) => {
  test("1, 2: each event of a task has an id, each a greater number, and the same on every stream and after a restart", async () => {
    const store = memoryStore();
    const server = await served(counter, { store });
    const events = await eventsOf(await call(server, stream("go")));
    expect(said(events)).toEqual(["task", ...words, "status"]);
    const ids = events.map(({ id }) => Number(id));
    expect(ids.every((id, at) => Number.isInteger(id) && id > (ids[at - 1] ?? 0))).toBe(true);
    const taskId = taskIn(events[0]?.json ?? "")?.id ?? "";
    await server.close();
    const again = await served(counter, { store });
    const rest = await eventsOf(await call(again, subscribe(taskId), { "last-event-id": String(ids[1]) }));
    expect(rest.map(({ id }) => Number(id))).toEqual(ids.slice(2));
  });

  test("3, 4: a broken stream continues after its last event, without the task, while the agent continues", async () => {
    const { opened, open } = gate();
    const held = defineAgent({
      ...card,
      async *onMessage(turn) {
        yield turn.working("one");
        yield turn.working("two");
        await opened;
        yield turn.working("three");
      },
    });
    const server = await served(held);
    const first = await eventsOf(await call(server, stream("go")), 3);
    const taskId = taskIn(first[0]?.json ?? "")?.id ?? "";
    const last = first.at(-1)?.id ?? "";
    const resumed = await call(server, subscribe(taskId), { "last-event-id": last });
    open();
    const rest = await eventsOf(resumed);
    expect([...said(first), ...said(rest)]).toEqual(["task", "one", "two", "three", "status"]);
    // If the first event is the task, its number is the number of the last event that the task contains.
    const begun = await served(held);
    const { id } = taskIn(await (await call(begun, send("go"))).text()) ?? {};
    const all = await eventsOf(await call(begun, subscribe(id ?? ""), { "last-event-id": "1" }));
    expect(said(all)).toEqual(["one", "two", "three", "status"]);
  });

  test("5: a terminal task sends its remaining events, and is not rejected", async () => {
    const server = await served(counter);
    const events = await eventsOf(await call(server, stream("go")));
    const taskId = taskIn(events[0]?.json ?? "")?.id ?? "";
    const after = async (id: string | undefined): Promise<readonly string[]> =>
      said(await eventsOf(await call(server, subscribe(taskId), { "last-event-id": String(id) })));
    expect(await after(events[2]?.id)).toEqual(["three", "four", "status"]);
    expect(await after(events.at(-1)?.id)).toEqual([]);
  });

  test("6: after an id that the server never issued, the stream begins with the task", async () => {
    const { opened, open } = gate();
    const held = defineAgent({
      ...card,
      async *onMessage(turn) {
        yield turn.working("one");
        await opened;
        yield turn.working("two");
      },
    });
    const server = await served(held);
    const [begun] = await eventsOf(await call(server, stream("go")), 1);
    const resumed = await call(server, subscribe(taskIn(begun?.json ?? "")?.id ?? ""), { "last-event-id": "999" });
    const [task] = await eventsOf(resumed, 1);
    expect(taskIn(task?.json ?? "")).toBeDefined();
    open();
  });

  test.each(["", "x", "-1", "1.5", "1e3", "9".repeat(16)])("7: %j is not an id, and is ignored", async (id) => {
    const { opened, open } = gate();
    const held = defineAgent({
      ...card,
      async *onMessage(turn) {
        yield turn.working("one");
        await opened;
      },
    });
    const server = await served(held);
    const [begun] = await eventsOf(await call(server, stream("go")), 1);
    const resumed = await call(server, subscribe(taskIn(begun?.json ?? "")?.id ?? ""), { "last-event-id": id });
    const [task] = await eventsOf(resumed, 1);
    expect(taskIn(task?.json ?? "")).toBeDefined();
    open();
  });

  test("a repeated send with the header continues after that event, and a first one ignores it", async () => {
    const server = await served(counter);
    const messageId = crypto.randomUUID();
    const first = await eventsOf(await call(server, stream("go", { messageId }), { "last-event-id": "4" }));
    expect(said(first)).toEqual(["task", ...words, "status"]);
    const headers = { "last-event-id": first[3]?.id ?? "" };
    const rest = await eventsOf(await call(server, stream("go", { messageId }), headers));
    expect(said(rest)).toEqual(["four", "status"]);
  });

  test("a direct reply has no id", async () => {
    const server = await served(defineAgent({ ...card, onMessage: (turn) => turn.reply("one") }));
    const events = await eventsOf(await call(server, stream("go")));
    expect([said(events), events[0]?.id]).toEqual([["one"], undefined]);
  });
});

test("the card of a streaming agent declares it; the card of an agent that does not stream need not", async () => {
  const server = await served(counter);
  const client = await connect(server.url, { extensions: [resumableStreams] });
  expect(client.ext(resumableStreams).declared).toEqual({
    uri: resumeExtension,
    description: "Streams continue after Last-Event-ID",
  });
  const still = await served(
    defineAgent({ ...card, capabilities: { streaming: false }, onMessage: (turn) => turn.reply("") }),
  );
  const other = await connect(still.url, { extensions: [resumableStreams] });
  expect(other.ext(resumableStreams).declared).toBeUndefined();
});
