import { A2AError, invalidParams, isWireErrorCode, type Part, wireErrorCodes } from "@parley/a2a/internal/model/index";
import type { Interceptor } from "@parley/a2a/internal/protocol/index";
import {
  before,
  type ContractCases,
  errorOf,
  obedient,
  saying,
  sendsMessage,
  signal,
  textIn,
  textsOf,
} from "./given.ts";

/** Unary operations (A2A 1.0 §3.1). */
export const callCases: ContractCases = {
  "a direct reply arrives unchanged (§3.1.1)": async ({ serve, expect }) => {
    const served = await serve();
    const { message } = await served.call("SendMessage", saying('reply äöü 😀 \u2028 \u0000 \\ "'));
    expect(message?.role).toEqual("ROLE_AGENT");
    expect(message?.parts).toEqual([{ text: 'Obedient: reply äöü 😀 \u2028 \u0000 \\ "' }]);
  },

  "every kind of part reaches the service (§4.1.6)": async ({ serve, expect }) => {
    const seen: unknown[] = [];
    const served = await serve({ options: { interceptors: [before((_, __, request) => void seen.push(request))] } });
    const parts: Part[] = [
      { text: "reply" },
      { raw: "AAEC/w==", mediaType: "application/octet-stream", filename: "a.bin" },
      { url: "https://files.example/a.png", mediaType: "image/png" },
      { data: { list: [1, 2.5, "x", { deep: true }], none: null } },
    ];
    await served.call("SendMessage", saying("", { parts, metadata: { a: 1 } }));
    const [message] = seen.filter(sendsMessage).map((request) => request.message);
    expect(message?.parts.map((part) => part.text ?? part.raw ?? part.url ?? part.data)).toEqual([
      "reply",
      "AAEC/w==",
      "https://files.example/a.png",
      { list: [1, 2.5, "x", { deep: true }], none: null },
    ]);
    expect(message?.metadata).toEqual({ a: 1 });
  },

  "a send waits for its task and returns all of it (§3.2.2)": async ({ serve, expect }) => {
    const { task } = await (await serve()).call("SendMessage", saying("chunks 3"));
    expect(task?.status.state).toEqual("TASK_STATE_COMPLETED");
    expect(textsOf(task ?? {}).join("")).toEqual("012");
  },

  "a send with returnImmediately does not wait (§3.2.2), and GetTask finds its task (§3.1.3)": async ({
    serve,
    expect,
  }) => {
    const go = signal();
    const served = await serve({ agents: obedient(go.given) });
    const request = { ...saying("wait"), configuration: { returnImmediately: true } };
    const { task } = await served.call("SendMessage", request);
    const id = task?.id ?? "";
    const found = await served.call("GetTask", { id });
    expect([found.id, found.contextId]).toEqual([id, task?.contextId]);
    go.give();
    const canceled = await errorOf(served.call("GetTask", { id: `${id}-other` }));
    expect(canceled.code).toEqual("TaskNotFound");
  },

  "a requested task id may contain any characters": async ({ serve, expect }) => {
    const served = await serve();
    for (const id of ["a/b", "a:cancel", "a b?c=d#e", "ä😀", "%2F"]) {
      // Resource names of 0.3 contain slashes.
      if (served.version < "1" && id.includes("/")) continue;
      expect((await errorOf(served.call("GetTask", { id }))).code).toEqual("TaskNotFound");
    }
  },

  "a task can be canceled once (§3.1.5)": async ({ serve, expect }) => {
    const served = await serve();
    const { task } = await served.call("SendMessage", {
      ...saying("wait"),
      configuration: { returnImmediately: true },
    });
    const id = task?.id ?? "";
    expect((await served.call("CancelTask", { id })).status.state).toEqual("TASK_STATE_CANCELED");
    expect((await errorOf(served.call("CancelTask", { id }))).code).toEqual("TaskNotCancelable");
  },

  "a terminal task rejects messages (§3.1.1)": async ({ serve, expect }) => {
    const served = await serve();
    const { task } = await served.call("SendMessage", saying("chunks 1"));
    const refused = await errorOf(served.call("SendMessage", saying("more", { taskId: task?.id })));
    expect(refused.code).toEqual("UnsupportedOperation");
  },

  "an answer continues the task that asked": async ({ serve, expect }) => {
    const served = await serve();
    const { task: asked } = await served.call("SendMessage", saying("ask"));
    expect(asked?.status.state).toEqual("TASK_STATE_INPUT_REQUIRED");
    const { task } = await served.call("SendMessage", saying("chunks 1", { taskId: asked?.id }));
    expect([task?.id, task?.status.state]).toEqual([asked?.id, "TASK_STATE_COMPLETED"]);
  },

  "without webhooks, every webhook operation fails with PushNotificationNotSupported (§3.1.7 to §3.1.10)": async ({
    serve,
    expect,
  }) => {
    const served = await serve();
    const { task } = await served.call("SendMessage", saying("chunks 1"));
    const taskId = task?.id ?? "";
    const refusals = [
      served.call("CreateTaskPushNotificationConfig", { taskId, url: "https://hooks.example/a" }),
      served.call("GetTaskPushNotificationConfig", { taskId, id: "a" }),
      served.call("ListTaskPushNotificationConfigs", { taskId }),
      served.call("DeleteTaskPushNotificationConfig", { taskId, id: "a" }),
    ];
    const codes = (await Promise.all(refusals.map(errorOf))).map(({ code }) => code);
    expect(codes).toEqual(codes.map(() => "PushNotificationNotSupported"));
  },

  "twenty concurrent calls each get their own answer": async ({ serve, expect }) => {
    const served = await serve();
    const service = served.service();
    const texts = Array.from({ length: 20 }, (_, at) => `reply ${at} ${"x".repeat(at * 500)}`);
    const replies = await Promise.all(
      texts.map(async (text) => (await service.call("SendMessage", saying(text), served.context())).payload.value),
    );
    expect(replies.map(({ message }) => message?.parts[0]?.text)).toEqual(texts.map((text) => `Obedient: ${text}`));
  },
};

/** The list of tasks (§3.1.4). One 0.3 binding lacks it. */
export const listCases: ContractCases = {
  "tasks are listed in pages and filtered by context (§3.1.4)": async ({ serve, expect }) => {
    const served = await serve();
    const ids: (string | undefined)[] = [];
    for (let at = 0; at < 3; at++) {
      ids.push((await served.call("SendMessage", saying("chunks 1", { contextId: "c" }))).task?.id);
    }
    await served.call("SendMessage", saying("chunks 1", { contextId: "other" }));
    const first = await served.call("ListTasks", { contextId: "c", pageSize: 2 });
    const second = await served.call("ListTasks", { contextId: "c", pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(ids.toReversed());
    expect([first.pageSize, first.totalSize, second.nextPageToken]).toEqual([2, 3, ""]);
    const whole = await served.call("ListTasks", { contextId: "c", includeArtifacts: true });
    expect(whole.tasks.map((task) => textsOf(task))).toEqual([["0"], ["0"], ["0"]]);
  },

  "an invalid page size is rejected with the name of the field": async ({ serve, expect }) => {
    const error = await errorOf((await serve()).call("ListTasks", { pageSize: 1000 }));
    expect([error.code, error.fields.map(({ field }) => field)]).toEqual(["InvalidParams", ["pageSize"]]);
  },
};

/** Throws the error that a message names: `error TaskNotFound`. */
const throwing: Interceptor = before((operation, _, request) => {
  const [what, code = ""] = textIn(request).split(" ");
  if (what !== "error") return;
  if (code === "unknown") throw new TypeError("the password is secret");
  if (code === "InvalidParams") throw invalidParams([{ field: "message.parts[0]", description: "is not to my taste" }]);
  if (!isWireErrorCode(code)) return;
  throw new A2AError(code, `Why it went wrong (${operation})`, { ...(code === "Unavailable" && { retryAfter: 7 }) });
});

/** Errors of calls and of streams (A2A 1.0 §3.3.2). */
export const errorCases: ContractCases = {
  "every error arrives with its code and message": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    // A version that lacks an error sends the most similar one.
    const codes = wireErrorCodes.filter((code) => served.version >= "1" || known03.has(code));
    for (const code of codes) {
      const error = await errorOf(served.call("SendMessage", saying(`error ${code}`)));
      expect(error.code).toEqual(code);
      // Some peers expect the error's name before its text.
      if (code !== "InvalidParams") expect(error.message.endsWith("Why it went wrong (SendMessage)")).toEqual(true);
      const streamed = await errorOf(served.stream("SendStreamingMessage", saying(`error ${code}`)));
      expect(streamed.code).toEqual(code);
    }
  },

  "an error that is not an A2AError becomes InternalError and reveals nothing": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    const error = await errorOf(served.call("SendMessage", saying("error unknown")));
    expect([error.code, error.message.includes("secret")]).toEqual(["InternalError", false]);
  },

  "a request that violates the schema is rejected with the names of its fields": async ({ serve, expect }) => {
    const served = await serve();
    const error = await errorOf(served.call("SendMessage", saying("", { parts: [] })));
    expect(error.code).toEqual("InvalidParams");
    // 0.3 names the field `content`.
    expect(error.fields.map(({ field }) => field.replace("content", "parts"))).toEqual(["message.parts"]);
  },
};

/** For versions with error details (A2A 1.0 §9.5, §10.6, §11.6). */
export const detailCases: ContractCases = {
  "an error arrives with its fields and its retryAfter": async ({ serve, expect }) => {
    const served = await serve({ options: { interceptors: [throwing] } });
    const wrong = await errorOf(served.call("SendMessage", saying("error InvalidParams")));
    expect(wrong.fields).toEqual([{ field: "message.parts[0]", description: "is not to my taste" }]);
    expect((await errorOf(served.call("SendMessage", saying("error Unavailable")))).retryAfter).toEqual(7);
  },
};

/** Errors that 0.3 names on every binding. */
const known03: ReadonlySet<string> = new Set([
  "TaskNotFound",
  "TaskNotCancelable",
  "PushNotificationNotSupported",
  "UnsupportedOperation",
  "InvalidParams",
  "Unauthenticated",
  "PermissionDenied",
]);
