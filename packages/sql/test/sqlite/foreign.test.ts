import { createHandler, defineAgent, memoryStore, type HandlerOptions, type Store } from "@parley/server";
import { byOrganization } from "@parley/a2a/auth";
import type { OperationName, Principal } from "@parley/a2a/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Driver, Statement } from "../../src/sqlite/driver.ts";
import { loadDriver } from "../../src/sqlite/libraries.ts";
import { migrate } from "../../src/sqlite/migrations.ts";
import { driverStore } from "../../src/sqlite/store.ts";
import { driverWriter } from "../../src/sqlite/writer.ts";
import { drivers } from "./drivers.ts";

/* Requests for another owner's data cost as much as those for an unknown id: the same statements, with as many rows. */

/** The requests to a store: one line for each statement, or for each call to the port. */
type Asked = string[];

interface Counted {
  readonly store: Store;
  readonly asked: Asked;
}

function countedDriver(driver: Driver, asked: Asked): Driver {
  const counted = (sql: string, { run, get, all }: Statement): Statement => {
    const note = (what: string, rows: number): void =>
      void asked.push(`${what} ${rows} ${sql.replaceAll(/\s+/g, " ")}`);
    return {
      run(...values) {
        const result = run(...values);
        note("run", result.changes);
        return result;
      },
      get(...values) {
        const row = get(...values);
        note("get", row === undefined ? 0 : 1);
        return row;
      },
      all(...values) {
        const rows = all(...values);
        note("all", rows.length);
        return rows;
      },
    };
  };
  return {
    prepare: (sql) => {
      const statement = driver.prepare(sql);
      return counted(sql, {
        run: (...values) => statement.run(...values),
        get: (...values) => statement.get(...values),
        all: (...values) => statement.all(...values),
      });
    },
    exec: (sql) => driver.exec(sql),
    transaction: (mode, body) => {
      asked.push(`begin ${mode}`);
      return driver.transaction(mode, body);
    },
    close: () => driver.close(),
  };
}

async function sqlite(name: (typeof drivers)[number]): Promise<Counted> {
  const asked: Asked = [];
  const driver = countedDriver((await loadDriver(name))(":memory:"), asked);
  migrate(driver);
  const writer = driverWriter(driver, { busyTimeout: 1000 });
  return { asked, store: driverStore(driver, writer, { durable: false, busyTimeout: 1000, watchInterval: 60_000 }) };
}

/** A memory store that counts calls. It looks up the task in a map, then compares the owner. */
function memory(): Counted {
  const asked: Asked = [];
  const store = new Proxy(memoryStore(), {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        const answer = (value as (...all: unknown[]) => unknown).apply(target, given);
        const note = (found: unknown): void =>
          void asked.push(`${String(name)} ${Array.isArray(found) ? found.length : typeof found}`);
        if (answer instanceof Promise) answer.then(note, note);
        else note(answer);
        return answer;
      };
    },
  });
  return { store, asked };
}

const agent = defineAgent({
  name: "Vault",
  description: "Keeps things",
  version: "1.0.0",
  skills: [],
  mayReplyDirectly: false,
  async *onMessage(turn) {
    const said = await turn.context.history();
    yield turn.artifact({ parts: [{ text: `${said.length} things` }] });
    if (turn.text === "ask") yield turn.inputRequired("which one?");
  },
});

const ada: Principal = { subject: "ada", organization: "acme" };
const eve: Principal = { subject: "eve", organization: "evil" };

/** The outcome of a call: its code, and its requests to the store. */
interface Outcome {
  readonly code: string;
  readonly asked: readonly string[];
}

interface Served {
  readonly store: Store;
  /** Makes a call, and reads the first events of a stream. */
  call(
    operation: OperationName,
    request: object,
    by?: Principal,
    more?: object,
  ): Promise<Outcome & { readonly value: unknown }>;
}

function serving({ store, asked }: Counted, more: Partial<HandlerOptions> = {}): Served {
  const handler = createHandler(agent, {
    publicUrl: "http://localhost:4000",
    store,
    // The server sends no events.
    push: { keys: [btoa("k".repeat(32))], net: { allowLoopback: true }, events: () => false },
    // Only the calls access the store: no periodic work.
    lease: { ttl: 3_600_000 },
    pollInterval: 3_600_000,
    ...more,
  });
  onTestFinished(() => handler.close());
  const service = handler.host.services.get(undefined) ?? expect.fail("No agent is served");
  return {
    store,
    async call(operation, request, by = eve, given = {}) {
      const context = { principal: by, version: "1.0", extensions: [], ...given };
      asked.length = 0;
      let value: unknown;
      let code = "ok";
      try {
        if (handler.host.operations[operation]?.stream === true) {
          const { batches } = await service.stream(operation as "SubscribeToTask", request as never, context);
          for await (const items of batches) {
            value = items[0]?.payload.value;
            break;
          }
        } else value = (await service.call(operation as "GetTask", request as never, context)).payload.value;
      } catch (thrown) {
        code = (thrown as { readonly code: string }).code;
      }
      return { code, value, asked: [...asked] };
    },
  };
}

const said = (more: object = {}, text = "hi"): object => ({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more },
});
const url = "http://localhost/hook";

/** Calls that name a task, and that fail if it does not exist. */
const calls: readonly (readonly [string, OperationName, (taskId: string) => object, object?])[] = [
  ["read it", "GetTask", (id) => ({ id })],
  ["read a part of it", "GetTask", (id) => ({ id, historyLength: 1 })],
  ["wait for its next generation", "GetTask", (id) => ({ id, currentGeneration: 1 }), { version: "1.1" }],
  ["continue it", "SendMessage", (taskId) => said({ taskId })],
  ["continue it in its context", "SendMessage", (taskId) => said({ taskId, contextId: "c-1" })],
  [
    "continue it with a webhook",
    "SendMessage",
    (taskId) => ({ ...said({ taskId }), configuration: { taskPushNotificationConfig: { url } } }),
  ],
  ["continue it as a stream", "SendStreamingMessage", (taskId) => said({ taskId })],
  ["cancel it", "CancelTask", (id) => ({ id })],
  ["subscribe to it", "SubscribeToTask", (id) => ({ id })],
  ["resume its stream", "SubscribeToTask", (id) => ({ id }), { after: 1 }],
  ["add a webhook", "CreateTaskPushNotificationConfig", (taskId) => ({ taskId, id: "hook", url })],
  ["read its webhook", "GetTaskPushNotificationConfig", (taskId) => ({ taskId, id: "hook" })],
  ["list its webhooks", "ListTaskPushNotificationConfigs", (taskId) => ({ taskId })],
  ["delete its webhook", "DeleteTaskPushNotificationConfig", (taskId) => ({ taskId, id: "hook" })],
];

/** The same calls, each with all of its members. */
const aboutTasks = calls.map(([what, operation, request, more = {}]) => [what, operation, request, more] as const);

/** Creates Ada's task in the context `c-1`, with a webhook. It waits for input. */
async function adasTask({ call, store }: Served): Promise<string> {
  const request = said({ contextId: "c-1", messageId: "m-1" }, "ask");
  const configuration = { taskPushNotificationConfig: { id: "hook", url } };
  const { value } = await call("SendMessage", { ...request, configuration }, ada);
  // The outbox also queries the store, until it has seen that there is nothing to send.
  await expect.poll(() => store.dueFeatures({ feature: "push", now: Infinity, limit: 1 })).toEqual([]);
  return (value as { readonly task: { readonly id: string } }).task.id;
}

const stores = [
  ["the store in memory", memory],
  ...drivers.map((name) => [name, () => sqlite(name)] as const),
] as const;

describe.each(stores)("on %s, a caller who tries to", (_, open) => {
  test.each(aboutTasks)(
    "%s: another caller's task costs as much as an unknown task",
    async (__, operation, request, context) => {
      const served = serving(await open());
      const foreign = await adasTask(served);
      // Fills the store's cache of callers.
      await served.call("SendMessage", said());
      await served.call(operation, request(crypto.randomUUID()), eve, context);
      const { value: _v, ...absent } = await served.call(operation, request(crypto.randomUUID()), eve, context);
      expect(absent.code).toBe("TaskNotFound");
      expect(absent.asked).not.toEqual([]);
      expect(await served.call(operation, request(foreign), eve, context)).toMatchObject(absent);
      // The task exists: for its owner, the same call has a different cost.
      const own = await served.call(operation, request(foreign), ada, context);
      expect(own.code).not.toBe("TaskNotFound");
      expect(own.asked).not.toEqual(absent.asked);
    },
  );

  test.each(aboutTasks)(
    "%s: a hidden task costs as much as an unknown task",
    async (__, operation, request, context) => {
      let hides = false;
      const served = serving(await open(), { authorizer: () => (hides ? "hide" : "allow") });
      const own = await adasTask(served);
      await served.call(operation, request(crypto.randomUUID()), ada, context);
      const { value: _v, ...absent } = await served.call(operation, request(crypto.randomUUID()), ada, context);
      hides = true;
      const hidden = await served.call(operation, request(own), ada, context);
      expect([hidden.code, hidden.asked.length]).toEqual(["TaskNotFound", absent.asked.length]);
    },
  );

  test.each<[string, (id: string) => object]>([
    ["list a context", (contextId) => ({ contextId })],
    ["continue with a page", (pageToken) => ({ pageToken })],
  ])("%s: another caller's costs as much as an unknown one", async (what, request) => {
    const served = serving(await open());
    await adasTask(served);
    await served.call("SendMessage", said({}, "ask"), ada);
    await served.call("SendMessage", said());
    const page = (await served.call("ListTasks", { pageSize: 1 }, ada)).value as { readonly nextPageToken: string };
    const [foreign, unknown] =
      what === "list a context" ? ["c-1", "c-2"] : [page.nextPageToken, "1.1.0123456789abcdef"];
    expect(foreign).not.toBe("");
    await served.call("ListTasks", request(unknown));
    const absent = await served.call("ListTasks", request(unknown));
    expect(await served.call("ListTasks", request(foreign))).toEqual(absent);
  });

  test.each<[string, (foreign: boolean, taskId: string) => object]>([
    ["begin in a context", (foreign) => said({ contextId: foreign ? "c-1" : "c-2" })],
    ["refer to a task", (foreign, taskId) => said({ referenceTaskIds: [foreign ? taskId : crypto.randomUUID()] })],
    ["use a messageId", (foreign) => said({ messageId: foreign ? "m-1" : "m-2" }, "ask")],
  ])("%s: another caller's costs as much as an unknown one", async (__, request) => {
    const costs: unknown[] = [];
    for (const foreign of [false, true]) {
      const served = serving(await open());
      const taskId = await adasTask(served);
      await served.call("SendMessage", said());
      const { code, value, asked } = await served.call("SendMessage", request(foreign, taskId));
      const { artifacts } = (value as { readonly task: { readonly artifacts: readonly { readonly parts: unknown }[] } })
        .task;
      costs.push({ code, parts: artifacts[0]?.parts, asked });
    }
    expect(costs[1]).toEqual(costs[0]);
    expect(costs[0]).toMatchObject({ code: "ok", parts: [{ text: "1 things" }] });
  });

  test("sharing within an organization takes one line, and includes nobody else", async () => {
    const served = serving(await open(), { ownerOf: byOrganization });
    const id = await adasTask(served);
    expect((await served.call("GetTask", { id }, { subject: "bob", organization: "acme" })).code).toBe("ok");
    for (const other of [eve, { subject: "ada" }, { subject: "acme" }, { subject: "ada", organization: "" }]) {
      expect((await served.call("GetTask", { id }, other)).code).toBe("TaskNotFound");
    }
  });

  test("an owner without a name is rejected", async () => {
    const served = serving(await open(), { ownerOf: ({ organization }) => organization as string });
    expect((await served.call("SendMessage", said(), { subject: "ada" })).code).toBe("InternalError");
    expect((await served.call("ListTasks", {}, { subject: "ada", organization: "" })).code).toBe("InternalError");
  });
});
