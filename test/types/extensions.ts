// Extensions are typed from end to end, so inactive extensions and mismatched values do not compile.
import { createHandler, defineAgent, memoryStore, text, type AgentEvent, type Turn } from "@parley/server";
import type { StandardSchema } from "@parley/a2a/internal/model/index";
import { connect, connectJsonRpc, type Client, type ConnectOptions } from "@parley/a2a";
import { defineExtension, extensionMethod } from "@parley/a2a/extensions";

declare const word: StandardSchema<string>;
declare const zones: StandardSchema<{ zone: string }>;
declare const form: StandardSchema<{ amount: number }>;
declare const query: StandardSchema<{ text: string; most?: number }>;
declare const found: StandardSchema<{ ids: readonly string[] }>;

const stamp = defineExtension({
  uri: "https://example.com/extensions/stamp/v1",
  kind: "data",
  paramsSchema: zones,
  metadata: { message: { at: { key: "stamp/at", schema: word } }, artifact: { at: word }, task: { by: word } },
  data: { form: { mediaType: "application/vnd.form+json", schema: form } },
  subStates: { drawing: { state: "TASK_STATE_WORKING" } },
});
const search = defineExtension({
  uri: "https://example.com/extensions/search/v1",
  kind: "method",
  requires: [stamp.uri],
  methods: {
    "notes/search": extensionMethod({
      request: query,
      response: found,
      rest: { method: "POST", path: "/notes:search" },
      grpc: "/example.v1.Notes/Search",
      onCall: (request) => ({ ids: [request.text] }),
    }),
  },
  onEvent: (event, reads) => ({ state: event.statusUpdate?.status.state, reads }),
});
const trace = defineExtension({
  uri: "https://example.com/extensions/trace/v1",
  metadata: { message: { id: word } },
  onTurnStart: (turn, reads) => ({
    step: (name: string): string => `${reads.message.id ?? ""} ${name} ${turn.taskId}`,
  }),
  onEvent: () => 5,
});
const other = defineExtension({ uri: "https://example.com/extensions/other/v1" });

// Methods.

const find = search.methods?.["notes/search"];
if (find !== undefined) defineExtension({ uri: "urn:example:named", methods: { "notes/find": find } });
// @ts-expect-error method names must contain a slash
if (find !== undefined) defineExtension({ uri: "urn:example:unnamed", methods: { find } });
// @ts-expect-error a method must declare its HTTP+JSON route
extensionMethod({ request: query, response: found, grpc: "/example.v1.Notes/Search" });

// An agent.

const agent = defineAgent({
  name: "Typed",
  description: "Compiles.",
  version: "1.0.0",
  skills: [],
  extensions: [stamp, trace],
  async *onMessage(turn) {
    const stamps = turn.ext(stamp);
    const at: string | undefined = stamps?.message.at;
    const forms: readonly { amount: number }[] | undefined = stamps?.data.form;
    const step: string | undefined = turn.ext(trace)?.step("begin");
    yield turn.working("Drawing", { messageMetadata: stamps?.subState("drawing") ?? {} });
    yield turn.artifact({ parts: [text("x")], metadata: stamps?.metadata("artifact", { at: "now" }) ?? {} });
    // @ts-expect-error a value of another type
    stamps?.metadata("artifact", { at: 5 });
    // @ts-expect-error no field of this name
    stamps?.metadata("artifact", { when: "now" });
    // @ts-expect-error the extension has no values for status updates
    stamps?.metadata("statusUpdate", {});
    // @ts-expect-error the extension has no values for messages
    stamps?.metadata("message", { by: "me" });
    // @ts-expect-error no such sub-state
    stamps?.subState("painting");
    // @ts-expect-error a value of another type
    stamps?.part("form", { amount: "5" });
    // @ts-expect-error no such data part
    stamps?.part("table", {});
    // @ts-expect-error the extension may be inactive
    yield turn.working(turn.ext(stamp).message.at ?? "");
    // @ts-expect-error the agent does not have this extension
    turn.ext(other);
    return turn.reply([at, forms?.[0]?.amount, step].join(" "));
  },
});
const withState = defineAgent<{ state: { count: number }; extensions: [typeof stamp] }>({
  name: "Typed",
  description: "Compiles.",
  version: "1.0.0",
  skills: [],
  extensions: [stamp],
  onMessage(turn) {
    const count: number | undefined = turn.state()?.count;
    // @ts-expect-error the agent does not have this extension
    turn.ext(trace);
    return turn.reply(`${count ?? 0} ${turn.ext(stamp)?.message.at ?? ""}`);
  },
});
const withCheckpoint = defineAgent<{ checkpoint: number; state: { count: number } }>({
  name: "Typed",
  description: "Compiles.",
  version: "1.0.0",
  skills: [],
  resumable: true,
  extensions: [stamp, trace],
  async *onMessage(turn) {
    const page: number | undefined = turn.checkpoint;
    const at: string | undefined = turn.ext(stamp)?.message.at;
    const step: string | undefined = turn.ext(trace)?.step("begin");
    turn.setState({ count: (turn.state()?.count ?? 0) + 1 });
    yield [turn.working([at, step].join(" ")), turn.saveCheckpoint((page ?? 0) + 1)];
    // @ts-expect-error a checkpoint of another type
    yield turn.saveCheckpoint("1");
    // @ts-expect-error the extension may be inactive
    yield turn.working(turn.ext(stamp).message.at ?? "");
    // @ts-expect-error no such field
    yield turn.working(turn.ext(stamp)?.message.by);
    yield* helped(turn);
  },
});
async function* helped(turn: Turn<{ checkpoint: number }>): AsyncGenerator<AgentEvent> {
  yield turn.saveCheckpoint((turn.checkpoint ?? 0) + 1);
}
const without = defineAgent({
  name: "Typed",
  description: "Compiles.",
  version: "1.0.0",
  skills: [],
  onMessage(turn) {
    // @ts-expect-error the agent does not have this extension
    turn.ext(stamp);
    return turn.reply(turn.text);
  },
});
export const handlers = [agent, withState, withCheckpoint, without].map((each) =>
  createHandler(each, { extensions: [search], publicUrl: "https://example.com", store: memoryStore() }),
);

// A client.

export async function read(): Promise<readonly unknown[]> {
  const client = await connect("https://example.com", { extensions: [stamp, search, trace, "urn:by:uri"] });
  const seen: unknown[] = [];
  for await (const event of client.sendStreamingMessage("Go")) {
    const by: string | undefined = event.ext(stamp)?.task.by;
    const drawing: "drawing" | undefined = event.ext(stamp)?.subState;
    const forms: readonly { amount: number }[] | undefined = event.ext(stamp)?.data.form;
    const five: number | undefined = event.ext(trace);
    const state: string | undefined = event.ext(search)?.state;
    // The events remain a union, so a check of a member narrows the type.
    if (event.statusUpdate) seen.push(event.statusUpdate.status.state);
    else if (event.task) seen.push(event.task.status.state, event.task.ext(stamp)?.task.by);
    else if (event.message) seen.push(event.message.parts, event.message.ext(trace));
    else seen.push(event.artifactUpdate.artifact.parts, event.artifactUpdate.artifact.ext(stamp)?.artifact.at);
    for (const artifact of event.task?.artifacts ?? []) {
      const written: string | undefined = artifact.ext(stamp)?.artifact.at;
      seen.push(written, artifact.ext(trace), artifact.name);
      // @ts-expect-error the client does not have this extension
      artifact.ext(other);
    }
    // @ts-expect-error the client does not have this extension
    event.ext(other);
    // @ts-expect-error the extension may be inactive
    seen.push(event.ext(stamp).task);
    // @ts-expect-error no such field
    seen.push(event.ext(stamp)?.task.at);
    // @ts-expect-error the extension has no values for status updates
    seen.push(event.ext(stamp)?.statusUpdate.at);
    seen.push(by, drawing, forms, five, state);
  }
  const answer = await client.sendMessage("Go");
  const conversation = client.conversation();
  const answers = [answer, await conversation.send("Go")];
  for (const { task } of answers) seen.push(task?.artifacts?.map((each) => each.ext(stamp)?.artifact.at));
  for (const { task, message } of answers) seen.push(task?.ext(stamp)?.task.by, message?.ext(stamp)?.message.at);
  for await (const event of conversation.stream("Go")) seen.push(event.ext(stamp));
  for await (const event of client.subscribeToTask("t")) seen.push(event.ext(stamp));
  for await (const task of client.tasks()) seen.push(task.ext(stamp)?.task.by);
  const tasks = [await client.getTask("t"), await client.cancelTask("t"), await client.waitFor("t")];
  for (const { artifacts = [] } of tasks) seen.push(artifacts[0]?.ext(stamp)?.artifact.at);
  seen.push(...tasks.map((task) => task.ext(stamp)?.task.by), (await client.listTasks()).tasks[0]?.ext(stamp));
  return seen;
}

export async function called(client: Client<typeof search | typeof stamp>): Promise<readonly string[]> {
  const { ids } = await client.ext(search).call("notes/search", { text: "x", most: 5 });
  const same: readonly string[] = ids;
  const zone: string | undefined = client.ext(stamp).params?.zone;
  const metadata = client.ext(stamp).metadata("message", { at: zone ?? "now" });
  // @ts-expect-error params of another type
  client.ext(stamp).params?.zone.toFixed();
  await client.sendMessage({ parts: [client.ext(stamp).part("form", { amount: 5 })], metadata });
  // @ts-expect-error a request of another type
  await client.ext(search).call("notes/search", { words: "x" });
  // @ts-expect-error no such method
  await client.ext(search).call("notes/find", { text: "x" });
  // @ts-expect-error an extension without methods
  await client.ext(stamp).call("notes/search", { text: "x" });
  // @ts-expect-error a value of another type
  client.ext(stamp).metadata("message", { at: 5 });
  // @ts-expect-error a value of another type
  client.ext(stamp).part("form", { amount: "5" });
  // @ts-expect-error the client does not have this extension
  client.ext(trace);
  return same;
}

/** Accepts any client, whatever its extensions. */
export async function state(client: Client): Promise<string | undefined> {
  const answer = await client.sendMessage("Go");
  // @ts-expect-error the type does not tell which extensions the client has
  answer.ext(stamp);
  return answer.task?.status.state;
}

export async function anyClient(): Promise<void> {
  const plain = await connect("https://example.com");
  const byUri = await connect("https://example.com", { extensions: ["urn:by:uri"] });
  const small = await connectJsonRpc("https://example.com", { extensions: ["urn:by:uri"] });
  const extended: Client<typeof stamp> = await connect("https://example.com", { extensions: [stamp] });
  for (const client of [plain, byUri, small, extended]) await state(client);
  // @ts-expect-error the client has no extensions
  plain.ext(stamp);
  // @ts-expect-error a URI has no types
  byUri.ext(stamp);
  // @ts-expect-error the small client accepts only URIs
  await connectJsonRpc("https://example.com", { extensions: [stamp] });
  const options: ConnectOptions<typeof stamp> = { extensions: [stamp], timeout: 5 };
  (await connect("https://example.com", options)).ext(stamp);
  // @ts-expect-error the client has a different extension
  const wrong: Client<typeof trace> = extended;
  await wrong.getTask("t");
}
