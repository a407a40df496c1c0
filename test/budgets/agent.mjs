// The agent whose work is counted, and requests to it as a host hands them to the handler.

import { createHandler, defineAgent } from "@parley/server";

/** Does what its message asks for: a reply, a task with an artifact, or a stream of so many chunks. */
const agent = defineAgent({
  name: "Counted",
  description: "Does what its first word says",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const [word, count] = turn.text.split(" ");
    if (word === "reply") return turn.reply("Forty-two, as it has been for a while now.");
    yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
    for (let n = 1; n < Number(count ?? 1); n += 1) yield turn.append("a", [{ text: "and so the tale runs on" }]);
    return undefined;
  },
});

let messages = 0;

/** The parameters of a send. @param {string} text */
function saying(text) {
  messages += 1;
  const messageId = `m-${String(messages).padStart(8, "0")}`;
  return { message: { messageId, role: "ROLE_USER", parts: [{ text }] } };
}

/**
 * Calls of JSON-RPC, without a socket.
 * @param {import("@parley/server").Store} store
 */
export function caller(store) {
  const handler = createHandler(agent, { publicUrl: "http://localhost", store });
  const signal = new AbortController().signal;

  /** Gives the answer as text. @param {string} method @param {object} params @returns {Promise<string>} */
  const call = async (method, params) => {
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    /** @type {Readonly<Record<string, string>>} */
    const headers = { "content-type": "application/json", "a2a-version": "1.0" };
    const { status, body } = await handler.handle({
      method: "POST",
      url: "/",
      header: (name) => headers[name],
      text: async () => text,
      signal,
    });
    let answer = "";
    if (typeof body === "function") {
      const write = (/** @type {string} */ chunk) =>
        ((answer += chunk), true);
      await body({ write, ready: async () => {}, closed: false, onClose: () => {} });
    } else answer = String(body ?? "");
    if (status !== 200 || answer.includes('"error"')) throw new Error(`${method}: ${status} ${answer}`);
    return answer;
  };
  return { call, close: () => handler.close({ grace: 0 }) };
}

/** The operations that are counted, by name. @param {ReturnType<typeof caller>["call"]} call */
export async function operations(call) {
  const id = /"id":"([^"]+)","contextId"/.exec(await call("SendMessage", saying("task")))?.[1];
  return {
    message: () => call("SendMessage", saying("reply")),
    task: () => call("SendMessage", saying("task")),
    get: () => call("GetTask", { id }),
    list: () => call("ListTasks", { pageSize: 10 }),
  };
}

/**
 * The minimum of the counts: occasional other work of a process is not part of an operation.
 * @param {number} rounds @param {() => Promise<number>} count
 */
export async function minOf(rounds, count) {
  let least = Infinity;
  for (let round = 0; round < rounds; round += 1) least = Math.min(least, await count());
  return least;
}

/**
 * What one chunk of a stream adds: a long stream without a short one.
 * @param {ReturnType<typeof caller>["call"]} call
 * @param {(operate: () => Promise<unknown>) => Promise<number>} count
 */
export async function chunked(call, count) {
  const counted = (/** @type {number} */ chunks) =>
    minOf(30, () => count(() => call("SendStreamingMessage", saying(`stream ${chunks}`))));
  await counted(101);
  const few = await counted(1);
  return ((await counted(101)) - few) / 100;
}
