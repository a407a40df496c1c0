import { refusal, type Asked, type Damage, type Json } from "./damage.ts";
import type { Configuration } from "./support.ts";

/**
 * Servers with a single mistake each, and the checks that must detect it. Every check of the suite is in one of these lists, because a
 * check that passes on everything checks nothing.
 */
export interface Mutant {
  readonly name: string;
  readonly breaks: readonly string[];
  /** Default `plain`; `official` is the official SDK, which sends webhooks. */
  readonly server?: Configuration | "official";
  readonly damage: Damage;
}

const answer = (operation: string | readonly string[], change: (result: Json, asked: Asked) => Json): Damage => ({
  answer(answered, asked) {
    const { error: refused, result } = answered;
    if (!operation.includes(asked.operation) || refused !== undefined || typeof result !== "object") return;
    answered.result = change(answered.result, asked) ?? answered.result;
  },
});

const sends = ["SendMessage", "SendStreamingMessage"];
const ask = (operation: string | readonly string[], change: (asked: Asked) => void): Damage => ({
  ask(asked) {
    if (operation.includes(asked.operation)) change(asked);
  },
});
const message = (change: (message: Json) => void): Damage =>
  ask(sends, ({ message: said }) => {
    if (said !== undefined) change(said);
  });
const card = (change: (body: Json) => void): Damage =>
  answer("AgentCard", (body) => {
    change(body);
    return body;
  });
const headers = (operation: string, change: (headers: Record<string, string>, status: number) => void): Damage => ({
  answer(answered, asked) {
    if (asked.operation === operation) change(answered.headers, answered.status);
  },
});
/** Every error of one kind, changed. */
const error = (code: number, change: (error: Json, asked: Asked) => void): Damage => ({
  answer(answered, asked) {
    const { error: found } = answered;
    const reason = found?.details?.[0]?.reason ?? found?.data?.[0]?.reason;
    const is = asked.rest
      ? found !== undefined &&
        reason === reasons[code] &&
        (reason !== undefined || (code === -32602 && found.code === 400))
      : found?.code === code;
    if (is) change(found, asked);
    if (is && asked.rest && typeof found.code === "number") answered.status = found.code;
  },
});
const reasons: Readonly<Record<number, string>> = {
  [-32001]: "TASK_NOT_FOUND",
  [-32002]: "TASK_NOT_CANCELABLE",
  [-32003]: "PUSH_NOTIFICATION_NOT_SUPPORTED",
  [-32004]: "UNSUPPORTED_OPERATION",
};
/** Another code, and no reason. */
const internal = (found: Json, asked: Asked): void => {
  found.code = asked.rest ? 500 : -32603;
  delete found.details;
  delete found.data;
};
const state = (result: Json): Json => (result.task ?? result).status;
const token = (asked: Asked): void => void (asked.headers["authorization"] = "Bearer mine");

/** The second of two subscriptions to a task misses a piece of it. */
export function missingUpdate(): Damage {
  const seen = new Set<string>();
  const second = new WeakSet<Asked>();
  return {
    ask(asked) {
      if (asked.operation !== "SubscribeToTask") return;
      const task = String(asked.get("id") ?? asked.path);
      if (seen.has(task)) second.add(asked);
      seen.add(task);
    },
    event: (event, _, asked) => (second.has(asked) && event.artifactUpdate !== undefined ? [] : [event]),
  };
}

/** The sends of 0.3, by the names of both bindings. */
const sends03 = ["SendMessage", "message/send"];
/** Replaces an error of 0.3, by its code, with one that says nothing. */
const error03 = (code: number): Damage => ({
  answer(answered, asked) {
    const found = answered.body?.code ?? answered.error?.code;
    if (found !== code) return;
    const nothing = { code: -32603, message: "Internal error" };
    if (asked.rest) {
      answered.status = 500;
      answered.body = nothing;
    } else answered.body.error = nothing;
  },
});
const task03 = (result: Json): Json => result.task ?? (result.kind === "task" ? result : undefined);

export const mutants: readonly Mutant[] = [
  // The card.
  { name: "a card without a description", breaks: ["CARD-FORM-101"], damage: card((body) => delete body.description) },
  {
    name: "a card in snake_case",
    breaks: ["CARD-FORM-101"],
    damage: card((body) => {
      body.default_input_modes = body.defaultInputModes;
    }),
  },
  {
    name: "a card that is served as text",
    breaks: ["CARD-FORM-102"],
    damage: headers("AgentCard", (all) => (all["content-type"] = "text/plain")),
  },
  {
    name: "an interface of version 1.0.0",
    breaks: ["CARD-FORM-103"],
    damage: card((body) => body.supportedInterfaces.forEach((one: Json) => (one.protocolVersion = "1.0.0"))),
  },
  {
    name: "an interface at a relative address",
    breaks: ["CARD-FORM-104"],
    damage: card((body) =>
      body.supportedInterfaces.push({ url: "/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0" }),
    ),
  },
  {
    name: "a card without caching headers",
    breaks: ["CARD-CACHE-101", "CARD-CACHE-102", "CARD-CACHE-103"],
    damage: headers("AgentCard", (all) => {
      delete all["cache-control"];
      delete all["etag"];
    }),
  },
  {
    name: "a card that is sent again although it is unchanged",
    breaks: ["CARD-CACHE-103"],
    damage: ask("AgentCard", (asked) => delete asked.headers["if-none-match"]),
  },
  {
    name: "an extended card that no capability announces",
    breaks: ["CARD-EXT-101"],
    damage: error(-32004, (_, asked) => {
      if (asked.operation === "GetExtendedAgentCard") internal(_, asked);
    }),
  },
  {
    name: "an extended card without skills' names",
    server: "guarded",
    breaks: ["CARD-EXT-102"],
    damage: answer("GetExtendedAgentCard", (body) => void body.skills.forEach((skill: Json) => delete skill.name)),
  },
  {
    name: "an open door",
    server: "guarded",
    breaks: ["CARD-EXT-103", "SEC-AUTH-101", "SEC-AUTH-102", "SEC-AUTH-103"],
    damage: { ask: token },
  },
  {
    name: "an extended card for shared caches",
    server: "guarded",
    breaks: ["CARD-EXT-104"],
    damage: headers("GetExtendedAgentCard", (all) => (all["cache-control"] = "public, max-age=300")),
  },

  // Sending.
  {
    name: "states of 0.3",
    breaks: ["CORE-SEND-101", "CORE-GET-101", "CORE-CANCEL-101", "CORE-WAIT-104"],
    damage: answer(["SendMessage", "GetTask", "CancelTask"], (result) => {
      const status = state(result);
      if (status !== undefined) status.state = status.state.replace("TASK_STATE_", "").toLowerCase();
    }),
  },
  {
    name: "times with an offset",
    breaks: ["CORE-SEND-101", "DM-TIME-101"],
    damage: answer("SendMessage", (result) => {
      const status = state(result);
      if (status !== undefined) status.timestamp = status.timestamp.replace("Z", "+00:00");
    }),
  },
  {
    name: "times of a second",
    breaks: ["DM-TIME-101"],
    damage: answer("SendMessage", (result) => {
      const status = state(result);
      if (status !== undefined) status.timestamp = status.timestamp.replace(/\.\d+/, "");
    }),
  },
  {
    name: "a direct answer without an id",
    breaks: ["CORE-SEND-102"],
    damage: answer("SendMessage", (result) => void delete result.message?.messageId),
  },
  {
    name: "a send that never waits",
    breaks: ["CORE-WAIT-101", "CORE-WAIT-102", "CORE-WAIT-105"],
    damage: ask("SendMessage", (asked) => asked.set("configuration", { returnImmediately: true })),
  },
  {
    name: "a task that does not say that it waits for its user",
    breaks: ["CORE-WAIT-103"],
    damage: answer("SendMessage", (result) => {
      const status = state(result);
      if (status?.state === "TASK_STATE_INPUT_REQUIRED") status.state = "TASK_STATE_WORKING";
    }),
  },
  {
    name: "a send that always waits",
    breaks: ["CORE-WAIT-104"],
    damage: ask("SendMessage", (asked) => asked.remove("configuration")),
  },
  {
    name: "an authorization that is not explained",
    breaks: ["CORE-WAIT-106"],
    damage: answer("SendMessage", (result) => {
      const status = state(result);
      if (status?.state === "TASK_STATE_AUTH_REQUIRED") delete status.message;
    }),
  },
  {
    name: "a server that puts a part in if there is none",
    breaks: ["CORE-VALID-101", "STREAM-VALID-101", "ERR-INFO-103", "ERR-INFO-104"],
    damage: message((said) => {
      if (said.parts?.length === 0) said.parts = [{ text: "" }];
    }),
  },
  {
    name: "a server that gives messages their ids",
    breaks: ["CORE-VALID-102"],
    damage: message((said) => (said.messageId ||= crypto.randomUUID())),
  },
  {
    name: "a server that reads the roles of 0.3",
    breaks: ["CORE-VALID-103"],
    damage: message((said) => (said.role = "ROLE_USER")),
  },
  {
    name: "a server that does not check parts",
    breaks: ["CORE-VALID-104", "CORE-VALID-105", "CORE-VALID-107"],
    damage: message((said) => {
      if (typeof said.parts === "string") said.parts = [{ text: said.parts }];
      for (const part of said.parts) {
        delete part.url;
        if (part.data === undefined && part.raw === undefined) part.text ??= "nothing";
      }
    }),
  },
  {
    name: "a server that makes up a message",
    breaks: ["CORE-VALID-106"],
    damage: ask("SendMessage", (asked) => {
      if (asked.message === undefined) {
        asked.set("message", { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "hello" }] });
      }
    }),
  },
  {
    name: "a server that takes any historyLength",
    breaks: ["CORE-VALID-108", "CORE-HIST-104", "CORE-LIST-110"],
    damage: ask(["SendMessage", "GetTask", "ListTasks"], (asked) => {
      if (asked.get("historyLength") < 0) asked.remove("historyLength");
      if (asked.get("configuration")?.historyLength < 0) asked.remove("configuration");
    }),
  },
  {
    name: "a server that rejects unknown fields",
    breaks: ["CORE-VALID-109"],
    damage: {
      ask: (asked) =>
        asked.get("anotherField") === undefined ? undefined : refusal(asked, -32602, 400, "anotherField is not known"),
    },
  },
  {
    name: "a server that does not look at media types",
    breaks: ["CORE-VALID-110"],
    damage: message((said) => said.parts?.forEach?.((part: Json) => delete part.mediaType)),
  },
  {
    name: "another code for an unknown task",
    breaks: ["CORE-TASK-101", "CORE-GET-102", "CORE-GET-103", "CORE-CANCEL-104", "STREAM-SUB-107", "STREAM-VALID-102"],
    damage: error(-32001, internal),
  },
  {
    name: "another code for a terminal task",
    breaks: ["CORE-TASK-102", "STREAM-SUB-106", "STREAM-VALID-102"],
    damage: error(-32004, internal),
  },
  {
    name: "a task for each message, whatever it names",
    breaks: ["CORE-TASK-101", "CORE-TASK-102", "CORE-TASK-103", "CORE-TASK-104", "STREAM-VALID-102"],
    damage: message((said) => {
      delete said.taskId;
      delete said.contextId;
    }),
  },
  {
    name: "a follow-up in any context",
    breaks: ["CORE-TASK-103"],
    damage: message((said) => {
      if (said.taskId !== undefined) delete said.contextId;
    }),
  },
  {
    name: "one task for everything",
    breaks: ["CORE-TASK-105", "CORE-TASK-107"],
    damage: answer("SendMessage", (result) => {
      if (result.task !== undefined) result.task.id = "task-1";
    }),
  },
  {
    name: "contexts of the server's own",
    breaks: ["CORE-TASK-104", "CORE-TASK-106", "CORE-TASK-107"],
    damage: answer("SendMessage", (result) => {
      if (result.task !== undefined) result.task.contextId = crypto.randomUUID();
    }),
  },
  {
    name: "a message is a new one each time",
    breaks: ["CORE-TASK-108"],
    damage: message((said) => (said.messageId = crypto.randomUUID())),
  },

  // Tasks.
  {
    name: "a task that is read without its artifacts",
    breaks: ["CORE-GET-101", "STREAM-FORM-105"],
    damage: answer("GetTask", (task) => void delete task.artifacts),
  },
  {
    name: "ids of letters and digits alone",
    breaks: ["CORE-GET-103"],
    damage: {
      ask(asked) {
        const id = asked.rest ? decodeURIComponent(asked.path.slice("/tasks/".length)) : asked.get("id");
        const odd = asked.operation === "GetTask" && !/^[\w-]+$/.test(String(id));
        return odd ? refusal(asked, -32602, 400, "That is not an id") : undefined;
      },
    },
  },
  {
    name: "files without names",
    breaks: ["CORE-GET-104"],
    damage: answer("SendMessage", (result) => {
      for (const artifact of result.task?.artifacts ?? []) for (const part of artifact.parts) delete part.filename;
    }),
  },
  {
    name: "bytes in base64 for URLs",
    breaks: ["CORE-GET-104"],
    damage: answer("SendMessage", (result) => {
      for (const artifact of result.task?.artifacts ?? []) {
        for (const part of artifact.parts) if (part.raw !== undefined) part.raw = "_-_-";
      }
    }),
  },
  {
    name: "data as text",
    breaks: ["CORE-GET-105"],
    damage: answer("SendMessage", (result) => {
      for (const artifact of result.task?.artifacts ?? []) {
        for (const part of artifact.parts) if (part.data !== undefined) part.data = JSON.stringify(part.data);
      }
    }),
  },
  {
    name: "a failure that is not reported",
    breaks: ["CORE-GET-106"],
    damage: answer(["SendMessage", "GetTask"], (result) => {
      const status = state(result);
      if (status?.state === "TASK_STATE_FAILED") status.state = "TASK_STATE_COMPLETED";
    }),
  },
  {
    name: "the whole history, whatever is wanted",
    breaks: ["CORE-HIST-101", "CORE-HIST-102", "CORE-LIST-107"],
    damage: ask(["SendMessage", "GetTask", "ListTasks"], (asked) => {
      asked.remove("historyLength");
      asked.remove("configuration");
    }),
  },
  {
    name: "an empty history for none",
    breaks: ["CORE-HIST-101", "CORE-LIST-107"],
    damage: answer(["SendMessage", "GetTask", "ListTasks"], (result) => {
      for (const task of result.tasks ?? [result.task ?? result]) task.history ??= [];
    }),
  },
  {
    name: "the oldest messages for the newest",
    breaks: ["CORE-HIST-102"],
    damage: {
      ...ask("GetTask", (asked) => {
        asked.headers["x-length"] = String(asked.get("historyLength") ?? "");
        asked.remove("historyLength");
      }),
      ...answer("GetTask", (task, asked) => {
        const length = Number(asked.headers["x-length"] || "100");
        task.history = task.history?.slice(0, length);
      }),
    },
  },
  {
    name: "the history backwards",
    breaks: ["CORE-HIST-103"],
    damage: answer("GetTask", (task) => void task.history?.reverse()),
  },
  {
    name: "messages without their metadata",
    breaks: ["CORE-HIST-103"],
    damage: answer("GetTask", (task) => void task.history?.forEach((said: Json) => delete said.metadata)),
  },
  {
    name: "a cancel without an effect",
    breaks: ["CORE-CANCEL-101", "STREAM-SUB-105"],
    damage: {
      ask(asked) {
        if (asked.operation !== "CancelTask") return;
        if (asked.rest) {
          asked.path = asked.path.replace(/:cancel$/, "");
          asked.method = "GET";
        } else asked.body.method = "GetTask";
      },
      ...answer("CancelTask", (task) => void (task.status.state = "TASK_STATE_CANCELED")),
    },
  },
  {
    name: "another code for a task that cannot be canceled",
    breaks: ["CORE-CANCEL-102", "CORE-CANCEL-103"],
    damage: error(-32002, internal),
  },
  {
    name: "lists without an empty token",
    breaks: ["CORE-LIST-101", "CORE-LIST-103"],
    damage: answer("ListTasks", (result) => {
      if (result.nextPageToken === "") delete result.nextPageToken;
    }),
  },
  {
    name: "a total of the page",
    breaks: ["CORE-LIST-103"],
    damage: answer("ListTasks", (result) => void (result.totalSize = result.tasks.length)),
  },
  {
    name: "artifacts in every list",
    breaks: ["CORE-LIST-102"],
    damage: ask("ListTasks", (asked) => asked.set("includeArtifacts", true)),
  },
  {
    name: "artifacts in no list",
    breaks: ["CORE-LIST-102"],
    damage: ask("ListTasks", (asked) => asked.remove("includeArtifacts")),
  },
  {
    name: "the first page for every token",
    breaks: ["CORE-LIST-103", "CORE-LIST-109"],
    damage: ask("ListTasks", (asked) => asked.remove("pageToken")),
  },
  {
    name: "lists with the oldest first",
    breaks: ["CORE-LIST-104"],
    damage: answer("ListTasks", (result) => void result.tasks.reverse()),
  },
  {
    name: "lists of every state",
    breaks: ["CORE-LIST-105", "CORE-LIST-110"],
    damage: ask("ListTasks", (asked) => asked.remove("status")),
  },
  {
    name: "lists of every time",
    breaks: ["CORE-LIST-106"],
    damage: ask("ListTasks", (asked) => asked.remove("statusTimestampAfter")),
  },
  {
    name: "pages of any size",
    breaks: ["CORE-LIST-108", "CORE-LIST-111"],
    damage: ask("ListTasks", (asked) => {
      const size = asked.get("pageSize");
      if (size === undefined || (size >= 1 && size <= 100)) return;
      asked.set("pageSize", size < 1 ? 1 : 100);
    }),
  },

  // Streams.
  {
    name: "a stream without its first event",
    breaks: ["STREAM-FORM-101", "STREAM-SUB-101", "STREAM-SUB-104"],
    damage: { event: (event, at) => (at === 0 ? [] : [event]) },
  },
  {
    name: "a stream without its last event",
    breaks: ["STREAM-FORM-101", "STREAM-LIVE-101", "STREAM-LIVE-103", "STREAM-SUB-101", "STREAM-SUB-105"],
    damage: {
      event: (event) =>
        /COMPLETED|CANCELED|INPUT_REQUIRED/.test(event.statusUpdate?.status.state ?? "") ? [] : [event],
    },
  },
  {
    name: "a stream whose last events are out of order",
    breaks: ["STREAM-FORM-101"],
    damage: { gather: (events) => [...events.slice(0, -2), ...events.slice(-2).reverse()] },
  },
  {
    name: "a stream that is called text",
    breaks: ["STREAM-FORM-102", "REST-SSE-101", "JSONRPC-ENV-102"],
    damage: {
      answer(answered) {
        if (answered.headers["content-type"]?.startsWith("text/event-stream") === true) {
          answered.headers["content-type"] = "text/plain";
        }
      },
    },
  },
  {
    name: "a direct answer that comes twice",
    breaks: ["STREAM-FORM-103"],
    damage: { event: (event) => (event.message === undefined ? [event] : [event, event]) },
  },
  {
    name: "updates of nobody's",
    breaks: ["STREAM-FORM-104"],
    damage: {
      event(event) {
        for (const update of [event.statusUpdate, event.artifactUpdate]) {
          if (update !== undefined) update.taskId = "somebody-else";
        }
        return [event];
      },
    },
  },
  {
    name: "pieces that do not say that they append",
    breaks: ["STREAM-FORM-105"],
    damage: {
      event(event) {
        delete event.artifactUpdate?.append;
        return [event];
      },
    },
  },
  {
    name: "a stream that is held until its end",
    breaks: ["STREAM-LIVE-101"],
    damage: { gather: (events) => events },
  },
  {
    name: "a task that ends with its stream",
    breaks: ["STREAM-LIVE-102", "STREAM-SUB-103", "STREAM-SUB-104"],
    damage: {
      event(event, _, asked) {
        const id = event.task?.id;
        if (id !== undefined) asked.headers["x-task"] = id;
        return [event];
      },
      closed(asked, _, origin) {
        const id = asked.headers["x-task"];
        if (id === undefined) return;
        void fetch(`${origin}/tasks/${id}:cancel`, { method: "POST", headers: { "a2a-version": "1.0" } });
      },
    },
  },
  {
    name: "streams that close together",
    breaks: ["STREAM-SUB-103"],
    damage: { closed: (_, streams) => streams.forEach((stream) => stream.end()) },
  },
  {
    name: "a stream that stays open after its end",
    breaks: ["STREAM-FORM-101", "STREAM-LIVE-103", "STREAM-SUB-101", "STREAM-SUB-105"],
    damage: { hold: true },
  },
  {
    name: "a subscription that misses an update",
    breaks: ["STREAM-SUB-102"],
    damage: missingUpdate(),
  },
  {
    name: "another code without streaming",
    server: "silent",
    breaks: ["STREAM-CAP-101"],
    damage: error(-32004, internal),
  },

  // Errors, versions, extensions.
  {
    name: "errors without details",
    breaks: ["ERR-INFO-101", "ERR-INFO-102", "ERR-INFO-104", "REST-ERR-101", "VER-NEG-103"],
    damage: {
      answer({ error: found }) {
        if (found === undefined) return;
        delete found.data;
        delete found.details;
      },
    },
  },
  {
    name: "details that do not say what they are",
    breaks: ["ERR-INFO-101", "ERR-INFO-102", "ERR-INFO-103"],
    damage: {
      answer({ error: found }) {
        for (const detail of found?.data ?? found?.details ?? []) delete detail["@type"];
      },
    },
  },
  {
    name: "errors without a message",
    breaks: ["CORE-GET-102", "ERR-INFO-103", "REST-ERR-101"],
    damage: {
      answer({ error: found }) {
        if (found !== undefined) found.message = "";
      },
    },
  },
  {
    name: "any version is accepted",
    breaks: ["VER-NEG-101", "VER-NEG-103"],
    damage: {
      ask(asked) {
        asked.headers["a2a-version"] = "1.0";
        asked.query.delete("A2A-Version");
      },
    },
  },
  {
    name: "versions must match exactly",
    breaks: ["VER-NEG-102"],
    damage: {
      ask: (asked) => {
        if (asked.headers["a2a-version"] !== "1.0") asked.headers["a2a-version"] = "99.0";
      },
    },
  },
  {
    name: "a required extension that is not required",
    server: "required",
    breaks: ["EXT-NEG-101"],
    damage: {
      ask: (asked) => {
        asked.headers["a2a-extensions"] ??= "https://example.com/required/v1";
      },
    },
  },
  {
    name: "unknown extensions are rejected",
    breaks: ["EXT-NEG-102"],
    damage: {
      ask: (asked) =>
        asked.headers["a2a-extensions"]?.includes("nobody") === true
          ? refusal(asked, -32602, 400, "An extension is not known")
          : undefined,
    },
  },

  // JSON-RPC.
  {
    name: "answers with ids of their own",
    breaks: ["JSONRPC-ENV-101", "JSONRPC-ENV-102", "JSONRPC-ERR-103"],
    damage: {
      answer({ body }) {
        if (body?.jsonrpc !== undefined) body.id = "1";
      },
      raw: (event) => (event.jsonrpc === undefined ? event : { ...event, id: "1" }),
    },
  },
  {
    name: "answers of JSON-RPC that are called text",
    breaks: ["JSONRPC-ENV-101"],
    damage: {
      answer({ body, headers: all }) {
        if (body?.jsonrpc !== undefined) all["content-type"] = "text/plain";
      },
    },
  },
  { name: "parse errors are internal", breaks: ["JSONRPC-ERR-101"], damage: error(-32700, internal) },
  { name: "invalid requests are internal", breaks: ["JSONRPC-ERR-102"], damage: error(-32600, internal) },
  { name: "unknown methods are internal", breaks: ["JSONRPC-ERR-103"], damage: error(-32601, internal) },
  {
    name: "invalid parameters are internal",
    breaks: ["JSONRPC-ERR-104", "CORE-VALID-101", "CORE-LIST-108", "CORE-LIST-109", "CORE-LIST-111"],
    damage: error(-32602, internal),
  },
  {
    name: "content types must match exactly",
    breaks: ["JSONRPC-MEDIA-101", "REST-MEDIA-103"],
    damage: {
      ask(asked) {
        const type = asked.headers["content-type"] ?? "application/json";
        if (!["application/json", "application/a2a+json"].includes(type)) return refusal(asked, -32600, 415, "No");
        return undefined;
      },
    },
  },
  {
    name: "any content type is accepted",
    breaks: ["JSONRPC-MEDIA-102", "REST-MEDIA-104"],
    damage: {
      ask: (asked) => {
        if (asked.headers["content-type"] !== undefined) asked.headers["content-type"] = "application/json";
      },
    },
  },

  // HTTP+JSON.
  {
    name: "answers as application/json",
    breaks: ["REST-MEDIA-101"],
    damage: headers("SendMessage", (all) => (all["content-type"] = "application/json")),
  },
  {
    name: "answers as text",
    breaks: ["REST-MEDIA-101", "REST-MEDIA-102"],
    damage: headers("SendMessage", (all) => (all["content-type"] = "text/plain")),
  },
  {
    name: "errors without their status",
    breaks: ["REST-ERR-101", "REST-ERR-102"],
    damage: {
      answer({ error: found }, asked) {
        if (!asked.rest || found === undefined) return;
        delete found.code;
        delete found.status;
      },
    },
  },
  {
    name: "broken JSON breaks the server",
    breaks: ["REST-ERR-103"],
    damage: {
      answer(answered, asked) {
        if (asked.rest && typeof asked.body === "string" && asked.body !== "") answered.status = 500;
      },
    },
  },
  {
    name: "an answer at every path",
    breaks: ["REST-ERR-104"],
    damage: {
      answer(answered, asked) {
        if (asked.path === "/no-such-resource") answered.status = 200;
      },
    },
  },
  {
    name: "queries that should be numbers are not checked",
    breaks: ["REST-QUERY-101"],
    damage: ask("ListTasks", ({ query }) => {
      if (query.get("pageSize") === "many") query.delete("pageSize");
    }),
  },
  {
    name: "queries in snake_case",
    breaks: ["REST-QUERY-102"],
    damage: ask("ListTasks", ({ query }) => {
      query.delete("contextId");
      query.delete("pageSize");
    }),
  },
  {
    name: "streams of JSON-RPC everywhere",
    breaks: ["REST-SSE-101"],
    damage: { raw: (event) => (event.jsonrpc === undefined ? { jsonrpc: "2.0", ...event } : event) },
  },

  // Webhooks.
  {
    name: "another code without push notifications",
    breaks: ["PUSH-CAP-101"],
    damage: error(-32003, internal),
  },
  {
    name: "configurations without ids",
    server: "official",
    breaks: ["PUSH-CFG-101"],
    damage: answer("CreateTaskPushNotificationConfig", (config) => void delete config.id),
  },
  {
    name: "a deletion without an effect",
    server: "official",
    breaks: ["PUSH-CFG-102", "PUSH-DELIV-104"],
    damage: {
      ask(asked) {
        if (asked.operation !== "DeleteTaskPushNotificationConfig") return;
        if (asked.rest) asked.method = "GET";
        else asked.body.method = "GetTaskPushNotificationConfig";
      },
    },
  },
  {
    name: "configurations for unknown tasks",
    server: "official",
    breaks: ["PUSH-CFG-103"],
    damage: error(-32001, internal),
  },
  {
    name: "webhooks without credentials",
    server: "official",
    breaks: ["PUSH-DELIV-101"],
    damage: ask("CreateTaskPushNotificationConfig", (asked) => asked.remove("authentication")),
  },
  {
    name: "webhooks that are never called",
    server: "official",
    breaks: ["PUSH-DELIV-101", "PUSH-DELIV-102"],
    damage: ask("CreateTaskPushNotificationConfig", (asked) => asked.set("url", "http://127.0.0.1:9/nobody")),
  },
  {
    name: "webhooks of a send that are forgotten",
    server: "official",
    breaks: ["PUSH-DELIV-103"],
    damage: ask("SendMessage", (asked) => asked.remove("configuration")),
  },

  // 0.3.
  {
    name: "a card of 0.3 whose skills have no names",
    breaks: ["V03-CARD-101"],
    damage: card((body) => body.skills.forEach((skill: Json) => delete skill.name)),
  },
  {
    name: "a task of 0.3 with the states of 1.0",
    breaks: ["V03-SEND-101", "V03-RPC-101", "V03-REST-101"],
    damage: answer(sends03, (result) => {
      const task = task03(result);
      if (task !== undefined)
        task.status.state = task.status.state === "completed" ? "TASK_STATE_COMPLETED" : "completed";
    }),
  },
  {
    name: "a task of 0.3 without its artifacts",
    breaks: ["V03-SEND-101"],
    damage: answer(sends03, (result) => void delete task03(result)?.artifacts),
  },
  {
    name: "a direct answer of 0.3 without an id",
    breaks: ["V03-SEND-102"],
    damage: answer(sends03, (result) => void delete (result.message ?? result).messageId),
  },
  {
    name: "a send of 0.3 that never blocks",
    breaks: ["V03-SEND-103"],
    damage: ask(sends03, (asked) => asked.set("configuration", { blocking: false })),
  },
  {
    name: "a send of 0.3 that always blocks",
    breaks: ["V03-SEND-103"],
    damage: ask(sends03, (asked) => asked.set("configuration", { blocking: true })),
  },
  {
    name: "a task of 0.3 for each message",
    breaks: ["V03-SEND-104", "V03-SEND-105"],
    damage: ask(sends03, (asked) => {
      delete asked.message.taskId;
      delete asked.message.contextId;
    }),
  },
  {
    name: "another code of 0.3 for an unknown task",
    breaks: ["V03-SEND-105", "V03-GET-101", "V03-CANCEL-102", "V03-REST-101"],
    damage: error03(-32001),
  },
  {
    name: "the whole history of 0.3",
    breaks: ["V03-GET-102"],
    damage: ask(["GetTask", "tasks/get"], (asked) => asked.remove("historyLength")),
  },
  {
    name: "another code of 0.3 for a task that cannot be canceled",
    breaks: ["V03-CANCEL-101"],
    damage: error03(-32002),
  },
  {
    name: "a stream of 0.3 without its last event",
    breaks: ["V03-STREAM-101", "V03-STREAM-102", "V03-STREAM-103", "V03-STREAM-104"],
    damage: { event: (event) => ((event.statusUpdate ?? event).final === true ? [] : [event]) },
  },
  {
    name: "a stream of 0.3 that does not say which update is the last",
    breaks: ["V03-STREAM-103", "V03-STREAM-104"],
    damage: {
      event(event) {
        const update = event.statusUpdate ?? event;
        if (update.final === true) update.final = false;
        return [event];
      },
    },
  },
  { name: "unknown methods of 0.3 are internal", breaks: ["V03-RPC-102"], damage: error03(-32601) },
  { name: "another code of 0.3 without push notifications", breaks: ["V03-PUSH-101"], damage: error03(-32003) },

  // Who may call.
  {
    name: "a server that rejects every caller",
    server: "guarded",
    breaks: ["SEC-AUTH-104"],
    damage: { ask: (asked) => void delete asked.headers["authorization"] },
  },
  {
    name: "a rejection without a challenge",
    server: "guarded",
    breaks: ["SEC-AUTH-103"],
    damage: { answer: ({ headers: all }) => void delete all["www-authenticate"] },
  },
  {
    name: "every task for every caller",
    server: "guarded",
    breaks: ["SEC-OWN-101"],
    damage: {
      ask: (asked) => {
        if (asked.headers["authorization"] === "Bearer theirs") token(asked);
      },
    },
  },
];
