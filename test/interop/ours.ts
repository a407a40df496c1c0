import { anonymous, type Message, type Part, type Task } from "@parley/server";
import type { CallContext } from "@parley/a2a/protocol";
import type { Client, SendInput, StreamResponse } from "@parley/a2a";

/** Our client, with the same steps as the peers' clients. `stepsOf` has the expected results. */

function textsOf(parts: readonly Part[] = []): string {
  return parts.map((part) => part.text ?? "").join("");
}

function stateOf({ status }: Pick<Task, "status">): string {
  return status.state.replace("TASK_STATE_", "");
}

function glance({ task, message, statusUpdate, artifactUpdate }: StreamResponse): string {
  if (task) return `task ${stateOf(task)}`;
  if (statusUpdate) return `status ${stateOf(statusUpdate)}`;
  return artifactUpdate ? `artifact ${textsOf(artifactUpdate.artifact.parts)}` : `message ${textsOf(message?.parts)}`;
}

type Events = AsyncIterator<StreamResponse, void>;

/** The events of a stream up to its end, or up to `patience` milliseconds of silence from a peer that never ends it. */
async function all(events: Events, patience?: number): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    const next = await within(events.next(), patience);
    if (next === undefined) return [...seen, "silence"];
    if (next.done === true) return seen;
    seen.push(glance(next.value));
  }
}

async function within<T>(promise: Promise<T>, patience: number | undefined): Promise<T | undefined> {
  if (patience === undefined) return promise;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), patience)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function taskOf(client: Client, input: SendInput): Promise<Task> {
  const { task } = await client.sendMessage(input);
  if (task === undefined) throw new Error("It is not a task");
  return task;
}

function to(ids: Pick<Message, "taskId" | "contextId">, words = "echo"): SendInput {
  return { parts: [{ text: words }], ...ids };
}

/** A stream whose next event was already requested. */
function prefixed(first: ReturnType<Events["next"]>, rest: Events): Events {
  let asked: typeof first | undefined = first;
  return {
    next: () => {
      const next = asked ?? rest.next();
      asked = undefined;
      return next;
    },
  };
}

/** A held task, and the rest of its stream. */
async function held(client: Client): Promise<{ id: string; rest: Events }> {
  const rest = client.sendStreamingMessage("hold");
  let id = "";
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    id ||= next.value.task?.id ?? "";
    if (glance(next.value).endsWith(" WORKING")) return { id, rest };
  }
  throw new Error("It ended before it worked");
}

const sentParts: readonly Part[] = [
  { raw: "AAH+/w==", filename: "a.bin", mediaType: "application/octet-stream" },
  { url: "https://example.com/a.txt", filename: "a.txt", mediaType: "text/plain" },
  { data: { list: [1.5, true, null, "é"], deep: { "": {} } } },
];

export const ourSteps: Readonly<Record<string, (client: Client, patience?: number) => Promise<unknown>>> = {
  card: ({ card }) => Promise.resolve({ name: card.name, skills: card.skills.map(({ id }) => id) }),
  "send-and-wait": async (client) => {
    const task = await taskOf(client, "echo hello");
    return { state: stateOf(task), artifacts: (task.artifacts ?? []).map(({ parts }) => textsOf(parts)) };
  },
  "send-and-go": async (client) => {
    const task = await taskOf(client, { message: "hold", configuration: { returnImmediately: true } });
    await client.cancelTask(task.id);
    return stateOf(task);
  },
  reply: async (client) => [glance(await client.sendMessage("message"))],
  failure: async (client) => {
    const task = await taskOf(client, "fail");
    return [stateOf(task), textsOf(task.status.message?.parts)];
  },
  stream: (client) => all(client.sendStreamingMessage("echo hello")),
  "stream-reply": (client) => all(client.sendStreamingMessage("message")),
  question: async (client) => {
    const asked = await taskOf(client, "ask");
    const answered = await taskOf(client, to({ taskId: asked.id }, "echo it"));
    const [whole, short] = [await client.getTask(asked.id), await client.getTask({ id: asked.id, historyLength: 1 })];
    const history = ({ history = [] }: Task): string[] => history.map(({ parts }) => textsOf(parts));
    return {
      states: [stateOf(asked), stateOf(answered)],
      same: asked.id === answered.id,
      history: history(whole),
      short: history(short),
    };
  },
  "question-streamed": (client) => all(client.sendStreamingMessage("ask")),
  tasks: async (client) => {
    const contextId = crypto.randomUUID();
    for (let n = 0; n < 3; n += 1) await client.sendMessage(to({ contextId }));
    const first = await client.listTasks({ contextId, pageSize: 2 });
    const second = await client.listTasks({ contextId, pageSize: 2, pageToken: first.nextPageToken });
    return {
      pages: [first.tasks.length, second.tasks.length],
      total: first.totalSize,
      more: [first.nextPageToken !== "", second.nextPageToken !== ""],
    };
  },
  cancel: async (client, patience) => {
    const { id, rest } = await held(client);
    const canceled = await client.cancelTask(id);
    return { state: stateOf(canceled), rest: await all(rest, patience) };
  },
  subscribe: async (client, patience) => {
    const { id, rest: other } = await held(client);
    const rest = client.subscribeToTask(id);
    const next = rest.next();
    const first = await within(next, patience);
    await client.cancelTask(id);
    const [seen, others] = await Promise.all([
      all(first ? rest : prefixed(next, rest), patience),
      all(other, patience),
    ]);
    return { first: first?.done === false ? glance(first.value) : "nothing", rest: seen, other: others };
  },
  parts: async (client) => (await taskOf(client, [{ text: "parts" }, ...sentParts])).artifacts?.[0]?.parts,
  "bytes-of-file": async (client) => [
    glance(await client.sendMessage([{ text: "bytes" }, { raw: "AAH+/w==", mediaType: "text/plain" }])),
  ],
  "extended-card": async (client) => (await client.getExtendedAgentCard()).description,
  "get-unknown": (client) => client.getTask("nobody"),
  "cancel-unknown": (client) => client.cancelTask("nobody"),
  "subscribe-unknown": (client) => all(client.subscribeToTask("nobody")),
  "send-to-unknown": (client) => client.sendMessage(to({ taskId: "nobody" })),
  "stream-to-unknown": (client) => all(client.sendStreamingMessage(to({ taskId: "nobody" }))),
  "cancel-finished": async (client) => client.cancelTask((await taskOf(client, "echo")).id),
  "send-to-finished": async (client) => client.sendMessage(to({ taskId: (await taskOf(client, "echo")).id })),
  "subscribe-to-finished": async (client) => all(client.subscribeToTask((await taskOf(client, "echo")).id)),
  "wrong-context": async (client) => {
    const { id } = await taskOf(client, "ask");
    return client.sendMessage(to({ taskId: id, contextId: "another" }));
  },
  "media-type": async (client) => {
    const video = { url: "https://example.com/a.mp4", mediaType: "video/mp4" };
    return glance(await client.sendMessage([{ text: "echo" }, video]));
  },
  // Calls the service directly, because the client itself rejects operations that the card does not declare.
  "push-create": (client) =>
    client.service.call(
      "CreateTaskPushNotificationConfig",
      { taskId: "t", id: "c", url: "https://example.com/hook" },
      contextOf(client),
    ),
  "push-get": (client) =>
    client.service.call("GetTaskPushNotificationConfig", { taskId: "t", id: "c" }, contextOf(client)),
  "push-list": (client) => client.service.call("ListTaskPushNotificationConfigs", { taskId: "t" }, contextOf(client)),
  "push-delete": (client) =>
    client.service.call("DeleteTaskPushNotificationConfig", { taskId: "t", id: "c" }, contextOf(client)),
};

function contextOf({ chosen }: Client): CallContext {
  return { principal: anonymous, version: chosen.protocolVersion, extensions: [] };
}
