import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type Client, connect, type ConnectOptions } from "../../src/client/index.ts";
import { defineExtension } from "../../src/extensions/index.ts";
import {
  A2AError,
  type AgentExtension,
  type JsonObject,
  type Message,
  type StreamResponse,
  type TaskState,
} from "../../src/model/index.ts";
import type { AnyExtension } from "../../src/protocol/index.ts";
import { fakeClock } from "@parley/testing";
import { eventually } from "../../../server/test/engine/support.ts";
import {
  cardOf,
  errorOf,
  jsonRpcAt,
  rpcServer,
  type RpcCall,
  soon,
  statusEvent,
  taskEvent,
  taskOf,
} from "./support.ts";

const uri = "https://example.com/extensions/stamp/v1";
const at = `${uri}/at`;

const stamp = defineExtension({
  uri,
  metadata: { message: { at: z.string() }, task: { at: z.string() }, statusUpdate: { at: z.string() } },
  data: { form: { mediaType: "application/vnd.form", schema: z.object({ a: z.number() }) } },
  subStates: { drawing: { state: "TASK_STATE_WORKING" } },
});

interface Line {
  readonly message: string;
  readonly uri?: unknown;
  readonly [name: string]: unknown;
}

/** Serves an agent whose card has the `declared` extensions. Returns a client with `extensions`. `log`: the client's warnings. */
async function agent<E extends string | AnyExtension = never>(
  declared: readonly (string | AgentExtension)[],
  extensions: readonly E[],
  script: (call: RpcCall) => void,
  more: Partial<ConnectOptions> = {},
) {
  const server = await rpcServer(script);
  const log: Line[] = [];
  const quiet = () => {};
  const warn = (message: string, fields: object = {}): void => void log.push({ message, ...fields });
  const card = cardOf([jsonRpcAt(server.url)], {
    capabilities: {
      streaming: true,
      extendedAgentCard: true,
      extensions: declared.map((one) => (typeof one === "string" ? { uri: one } : one)),
    },
  });
  const logger = { debug: quiet, info: quiet, warn, error: quiet };
  const client: Client<Extract<E, AnyExtension>> = await connect(card, { ...soon, ...more, logger, extensions });
  return { client, log, server, asked: () => server.calls.map(({ headers }) => headers["a2a-extensions"]) };
}

/** Sets the response header that lists the active extensions, as a server does if it activates these extensions. */
const echo = (call: RpcCall, ...uris: readonly string[]): void => void call.response.setHeader("a2a-extensions", uris);

const done = (metadata?: JsonObject) => taskOf("TASK_STATE_COMPLETED", metadata && { metadata });

describe("extensions that a client reads (A2A 1.0 §4.6)", () => {
  test("an answer, an event and a task have `ext`, which JSON leaves out", async () => {
    const task = done({ [at]: "noon" });
    const { client } = await agent([uri], [stamp], (call) => {
      echo(call, uri);
      if (call.method === "SendMessage") call.answer({ task });
      else if (call.method === "ListTasks")
        call.answer({ tasks: [task], nextPageToken: "", pageSize: 1, totalSize: 1 });
      else if (call.method.includes("Stream") || call.method.startsWith("Sub")) call.events.send({ task });
      else call.answer(task);
    });
    const answer = await client.sendMessage("Go");
    expect(answer.ext(stamp)?.task.at).toBe("noon");
    expect(answer.task?.ext(stamp)?.task.at).toBe("noon");
    expect(JSON.parse(JSON.stringify(answer))).toEqual({ task });
    expect(Object.keys(answer)).toEqual(["task"]);
    for await (const event of client.sendStreamingMessage("Go")) {
      expect(event.ext(stamp)?.task.at).toBe("noon");
      expect(event.task?.ext(stamp)?.task.at).toBe("noon");
    }
    const read = [await client.getTask("t1"), await client.cancelTask("t1"), await client.waitFor("t1")];
    for await (const each of client.tasks()) read.push(each);
    expect(read.map((each) => each.ext(stamp)?.task.at)).toEqual(["noon", "noon", "noon", "noon"]);
    expect(read.map((each) => JSON.stringify(each))).toEqual(read.map(() => JSON.stringify(task)));
  });

  test("each artifact has its own `ext`, in an event, a task and a list", async () => {
    const graded = defineExtension({ uri, metadata: { artifact: { at: z.string() } } });
    const seen: string[] = [];
    const counting = defineExtension({
      uri: "urn:counting",
      onEvent: ({ artifactUpdate, task }) => {
        seen.push(artifactUpdate?.artifact.artifactId ?? `task of ${task?.artifacts?.length}`);
        return artifactUpdate?.taskId;
      },
    });
    const artifactOf = (artifactId: string, when: string) => ({
      artifactId,
      parts: [{ text: "x" }],
      metadata: { [at]: when },
    });
    const artifacts = [artifactOf("a1", "noon"), artifactOf("a2", "midnight")];
    const task = taskOf("TASK_STATE_COMPLETED", { artifacts });
    const { client } = await agent([uri, "urn:counting"], [graded, counting], (call) => {
      echo(call, `${uri}, urn:counting`);
      if (call.method === "SendMessage") call.answer({ task });
      else if (call.method === "ListTasks")
        call.answer({ tasks: [task], nextPageToken: "", pageSize: 1, totalSize: 1 });
      else if (call.method.includes("Stream")) {
        call.events.send(taskEvent());
        call.events.send({
          artifactUpdate: { taskId: "t1", contextId: "c1", artifact: artifactOf("a2", "midnight"), lastChunk: true },
        });
        call.events.send({ task });
      } else call.answer(task);
    });
    const whens = (of: readonly { ext(extension: typeof graded): { artifact: { at?: string } } | undefined }[] = []) =>
      of.map((each) => each.ext(graded)?.artifact.at);
    const answer = await client.sendMessage("Go");
    expect(whens(answer.task?.artifacts)).toEqual(["noon", "midnight"]);
    expect(answer.task?.ext(graded)?.artifact.at).toBe("midnight");
    expect(JSON.parse(JSON.stringify(answer))).toEqual({ task });
    // The extension gets the task immediately, but gets an artifact only when the artifact's data is read.
    expect(seen).toEqual(["task of 2"]);
    const [first] = answer.task?.artifacts ?? [];
    expect([first?.ext(counting), first?.ext(counting)]).toEqual(["t1", "t1"]);
    expect(seen).toEqual(["task of 2", "a1"]);
    expect(whens((await client.getTask("t1")).artifacts)).toEqual(["noon", "midnight"]);
    expect(whens((await client.listTasks()).tasks[0]?.artifacts)).toEqual(["noon", "midnight"]);
    const streamed: unknown[] = [];
    for await (const { artifactUpdate, task: last } of client.sendStreamingMessage("Go"))
      streamed.push(artifactUpdate?.artifact.ext(graded)?.artifact.at ?? whens(last?.artifacts));
    expect(streamed).toEqual([[], "midnight", ["noon", "midnight"]]);
  });

  test("`ext` is undefined if the server did not activate the extension, or the client does not have it", async () => {
    const { client } = await agent([uri], [stamp], (call) => call.answer({ task: done({ [at]: "noon" }) }));
    const { task } = await client.sendMessage("Go");
    expect(task?.ext(stamp)).toBeUndefined();
    expect(task?.ext(defineExtension({ uri: "urn:other" }) as never)).toBeUndefined();
  });

  test("the client rejects a value in place of the list", async () => {
    const wrong = agent([uri], stamp as never, (call) => call.answer({ task: done() }));
    await expect(wrong).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "extensions", description: "must be a list, such as [timestamp]" }],
    });
  });

  test("a client without extensions adds nothing", async () => {
    const { client } = await agent([uri], [uri], (call) => call.answer({ task: done() }));
    const answer = await client.sendMessage("Go");
    expect(Object.getOwnPropertyNames(answer)).toEqual(["task"]);
    expect(() => (client as unknown as Client<typeof stamp>).ext(stamp)).toThrow(
      `The client was connected without the extension ${uri}, or only with its URI: pass its value in connect`,
    );
  });
});

describe("extensions that a client requests (A2A 1.0 §3.2.6, §4.6)", () => {
  const a = defineExtension({ uri: "urn:a", requires: ["urn:b"] });
  const b = defineExtension({ uri: "urn:b", requires: ["urn:c", "urn:a"] });

  test("with all that they require, even if they require each other", async () => {
    const { client, asked } = await agent(["urn:a", "urn:b", "urn:c"], [a, b], (call) => call.answer({ task: done() }));
    await client.sendMessage("Go");
    await client.getTask("t1").catch(() => {});
    expect(asked()).toEqual(["urn:a,urn:b,urn:c", "urn:a,urn:b,urn:c"]);
  });

  test("only if the card declares them and all that they require, unless given as a URI", async () => {
    const { client, asked, log } = await agent(["urn:a", "urn:b", uri], [a, b, stamp, "urn:z"], (call) =>
      call.answer({ task: done() }),
    );
    await client.sendMessage("Go", { extensions: ["urn:y"] });
    expect(asked()).toEqual([`urn:z,urn:y,${uri}`]);
    expect(log).toEqual([
      expect.objectContaining({ uri: "urn:a", missing: ["urn:c"] }),
      expect.objectContaining({ uri: "urn:b", missing: ["urn:c"] }),
    ]);
  });

  test("also those of the extended card, once it was read (A2A 1.0 §3.1.11)", async () => {
    const { client, asked } = await agent([], [stamp], (call) => {
      const { capabilities, ...card } = cardOf([jsonRpcAt("http://127.0.0.1:1")]);
      call.answer(
        call.method === "GetTask" ? done() : { ...card, capabilities: { ...capabilities, extensions: [{ uri }] } },
      );
    });
    await client.getTask("t1");
    await client.getExtendedAgentCard();
    await client.getTask("t1");
    expect(asked()).toEqual([undefined, undefined, uri]);
  });

  test("the same in retries and in connections of a resumed stream", async () => {
    const { client, asked } = await agent([uri], [stamp], (call) => {
      if (call.method === "GetTask" && call.number === 1) return call.drop();
      echo(call, uri);
      if (call.method === "GetTask") return call.answer(done());
      call.events.send(taskEvent());
      if (call.method === "SendStreamingMessage") call.events.drop();
      else call.events.send(statusEvent("TASK_STATE_COMPLETED"));
    });
    await client.getTask("t1");
    const seen: boolean[] = [];
    for await (const event of client.sendStreamingMessage("Go")) seen.push(event.ext(stamp) !== undefined);
    expect(seen).toEqual([true, true, true]);
    expect(asked()).toEqual([uri, uri, uri, uri]);
  });
});

describe("hooks of a client", () => {
  /** Answers with the message, and activates every requested extension. */
  const mirror = (call: RpcCall): void => {
    call.response.setHeader("a2a-extensions", String(call.headers["a2a-extensions"]));
    const { message } = call.params as { readonly message?: Message };
    if (call.method !== "SendStreamingMessage") call.answer({ message: { ...message, role: "ROLE_AGENT" } });
    else
      for (const state of ["WORKING", "COMPLETED"]) call.events.send(statusEvent(`TASK_STATE_${state}` as TaskState));
  };

  test("`onRequest` changes the request, once per call, and gets the operation, the card and its params", async () => {
    const seen: unknown[] = [];
    const signing = defineExtension({
      uri,
      paramsSchema: z.object({ key: z.string() }),
      metadata: { message: { at: z.string() } },
      async onRequest(request, { operation, card, params, clock }) {
        seen.push([operation, card.name, params, typeof clock.now()]);
        await Promise.resolve();
        if (!("message" in request)) return request;
        const { message } = request;
        return { ...request, message: { ...message, metadata: { ...message.metadata, [at]: "noon" } } };
      },
    });
    const { client, server } = await agent([{ uri, params: { key: "k" } }], [signing], (call) => {
      if (call.number === 1) call.page(503, {}, "");
      else mirror(call);
    });
    const { message } = await client.sendMessage("Go", {}).catch(() => client.sendMessage("Go"));
    expect(message?.ext(signing)?.message.at).toBe("noon");
    expect(server.calls[1]?.params).toMatchObject({ message: { metadata: { [at]: "noon" } } });
    expect(seen).toEqual([
      ["SendMessage", "Stranger", { key: "k" }, "number"],
      ["SendMessage", "Stranger", { key: "k" }, "number"],
    ]);
  });

  test("`onEvent` reads each event once, even if unused, and `ext` has its result", async () => {
    const seen: string[] = [];
    const counting = defineExtension({
      uri,
      onEvent(event, reads) {
        seen.push(String(event.statusUpdate?.status.state));
        return { number: seen.length, reads };
      },
    });
    const { client } = await agent([uri], [counting], mirror);
    const numbers: (number | undefined)[] = [];
    for await (const event of client.sendStreamingMessage("Go")) {
      numbers.push(event.ext(counting)?.number, event.ext(counting)?.number);
    }
    expect(numbers).toEqual([1, 1, 2, 2]);
    expect(seen).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
  });

  test("`onEvent` gets a copy: its changes are not in the events of the program", async () => {
    const meddling = defineExtension({
      uri,
      onEvent(event, reads) {
        const { status } = event.statusUpdate as { status: { state: unknown } };
        status.state = "TASK_STATE_FAILED";
        Object.assign(event, { statusUpdate: { taskId: "another" }, message: {} });
        Reflect.deleteProperty(event, "statusUpdate");
        return reads.subState ?? "read";
      },
    });
    const other = defineExtension({ uri: "urn:other", onEvent: (event) => event.statusUpdate?.status.state });
    const { client } = await agent([uri, "urn:other"], [meddling, other], mirror);
    const seen: unknown[] = [];
    for await (const event of client.sendStreamingMessage("Go")) {
      const { state } = event.statusUpdate?.status ?? {};
      seen.push([Object.keys(event), state, event.ext(meddling), event.ext(other)]);
    }
    expect(seen).toEqual(
      ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"].map((state) => [["statusUpdate"], state, "read", state]),
    );
  });

  test("hooks do not run if the extension was not requested or not activated", async () => {
    const never = (): never => {
      throw new Error("not this one");
    };
    const one = defineExtension({ uri, onRequest: never, onEvent: never });
    const two = defineExtension({ uri: "urn:two", onEvent: never });
    const { client } = await agent(["urn:two"], [one, two], (call) => {
      echo(call, uri.replace("v1", "v2"));
      call.answer({ task: done() });
    });
    const { task } = await client.sendMessage("Go");
    expect([task?.ext(one), task?.ext(two)]).toEqual([undefined, undefined]);
  });

  describe.each(["data", "profile"] as const)("of kind %s, when they fail", (kind) => {
    const failing = (hooks: Partial<AnyExtension>) => agent([uri], [{ uri, kind, ...hooks } as AnyExtension], mirror);

    test.each([
      [
        "throws",
        () => {
          throw new Error("no key");
        },
      ],
      ["rejects", () => Promise.reject(new Error("no key"))],
      ["returns nothing", () => undefined],
      [
        "returns another message",
        (request: object) => ({ ...request, message: { messageId: "x", role: "ROLE_USER", parts: [] } }),
      ],
      ["adds a field", (request: object) => ({ ...request, extra: 1 })],
      [
        "adds a field to the message",
        (request: { message: object }) => ({ message: { ...request.message, extra: 1 } }),
      ],
      [
        "makes no part",
        (request: { message: object }) => ({ message: { ...request.message, parts: [{ kind: "text" }] } }),
      ],
      [
        "adds a field to a part",
        (request: { message: object }) => ({ message: { ...request.message, parts: [{ text: "Go", extra: 1 }] } }),
      ],
      ["adds a value that is not JSON", (request: object) => ({ ...request, metadata: { value: 1n } })],
      ["turns the metadata into text", (request: object) => ({ ...request, metadata: "x" })],
      [
        "changes the message itself",
        (request: { message: object }) => {
          Object.assign(request.message, { messageId: "x", parts: [{ text: "Stop" }] });
          return request;
        },
      ],
      [
        "changes who speaks",
        (request: { message: object }) => ({ message: { ...request.message, role: "ROLE_BOSS" } }),
      ],
    ] as const)("`onRequest` that %s", async (_, onRequest) => {
      const { client, server, log } = await failing({ onRequest } as never);
      const outcome = client.sendMessage("Go");
      if (kind === "data") {
        expect((await outcome).message?.parts).toEqual([{ text: "Go" }]);
        expect(log).toMatchObject([{ uri, hook: "onRequest" }]);
      } else {
        expect(await errorOf(outcome)).toMatchObject({ code: "InternalError", message: expect.stringContaining(uri) });
        expect(server.calls).toEqual([]);
      }
    });

    test("`onEvent` that throws: earlier events still arrive", async () => {
      const { client, log } = await failing({
        onEvent: (event: StreamResponse) => {
          if (event.statusUpdate?.status.state === "TASK_STATE_COMPLETED") throw new Error("no key");
          return "fine";
        },
      });
      const seen: unknown[] = [];
      const outcome = (async () => {
        for await (const event of client.sendStreamingMessage("Go")) seen.push(event.ext({ uri }));
      })();
      if (kind === "data") {
        await outcome;
        expect(seen).toEqual(["fine", undefined]);
        expect(log).toMatchObject([{ uri, hook: "onEvent" }]);
      } else {
        expect(await errorOf(outcome)).toMatchObject({
          code: "InternalError",
          message: expect.stringContaining("onEvent"),
        });
        expect(seen).toEqual(["fine"]);
      }
    });

    test("the caller gets a protocol error unchanged", async () => {
      const onRequest = (): never => {
        throw new A2AError("Unauthenticated", "The wallet is closed");
      };
      const { client } = await failing({ onRequest });
      if (kind === "data") await client.sendMessage("Go");
      else expect(await errorOf(client.sendMessage("Go"))).toMatchObject({ code: "Unauthenticated" });
    });
  });

  test("a rejected promise of `onEvent` that nothing awaits is logged", async () => {
    const late = defineExtension({ uri, onEvent: () => Promise.reject<number>(new Error("late")) });
    const { client, log } = await agent([uri], [late], mirror);
    const { message } = await client.sendMessage("Go");
    await expect(message?.ext(late)).rejects.toThrow("late");
    expect(log).toMatchObject([{ uri, hook: "onEvent" }]);
  });

  test("`onRequest` may return a promise of any library", async () => {
    // A promise of this constructor is not an instance of this realm's `Promise`.
    const foreign = runInNewContext("Promise") as PromiseConstructor;
    const thenable = defineExtension({ uri, onRequest: (request) => foreign.resolve(request) });
    const { client } = await agent([uri], [thenable], mirror);
    expect((await client.sendMessage("Go")).message?.parts).toEqual([{ text: "Go" }]);
  });

  test("a data extension whose `onRequest` never settles is left out after 30 seconds, and logged", async () => {
    const clock = fakeClock();
    let asked = false;
    const onRequest = (): Promise<never> => {
      asked = true;
      return new Promise<never>(() => {});
    };
    const hanging = defineExtension({ uri, kind: "data", onRequest });
    const { client, log } = await agent([uri], [hanging], mirror, { clock });
    const sent = client.sendMessage("Go");
    await eventually(() => asked);
    clock.advance(29_999);
    expect(log).toEqual([]);
    clock.advance(1);
    expect((await sent).message?.parts).toEqual([{ text: "Go" }]);
    expect(log).toMatchObject([{ uri, hook: "onRequest" }]);
  });

  test("an async schema of a data extension does not fail a call, and its params are not read", async () => {
    // Is asynchronous only for some values, so `defineExtension()` cannot detect the mistake.
    const validate = (value: unknown) =>
      JSON.stringify(value).includes("later") ? Promise.reject(new Error("late")) : { issues: [{ message: "no" }] };
    const schema = { "~standard": { version: 1 as const, vendor: "x", validate } };
    const late = defineExtension({ uri, kind: "data", paramsSchema: schema, metadata: { message: { at: schema } } });
    const { client, log } = await agent([{ uri, params: { zone: "later" } }], [late], mirror);
    const { message } = await client.sendMessage({ parts: [{ text: "Go" }], metadata: { [at]: "later" } });
    expect([client.ext(late).params, message?.ext(late)?.message]).toEqual([undefined, {}]);
    expect(log.map(({ cause }) => String(cause))).toEqual(
      Array.from({ length: 3 }, () => expect.stringContaining("returned a promise") as string),
    );
  });

  test("an `onRequest` that never answers ends with the call", async () => {
    const hanging = defineExtension({ uri, onRequest: () => new Promise<never>(() => {}) });
    const { client } = await agent([uri], [hanging], mirror);
    expect(await errorOf(client.sendMessage("Go", { timeout: 5 }))).toMatchObject({ code: "Timeout" });
  });
});

describe("untrusted input", () => {
  test("params that do not match are absent, and logged", async () => {
    const given: unknown[] = [];
    const picky = defineExtension({
      uri,
      paramsSchema: z.object({ key: z.string() }),
      onRequest: (request, { params }) => (given.push(params), request),
    });
    const { client, log } = await agent([{ uri, params: { key: 5 } }], [picky], (call) =>
      call.answer({ task: done() }),
    );
    await client.sendMessage("Go");
    expect([client.ext(picky).params, given]).toEqual([undefined, [undefined]]);
    expect(log).toEqual([
      { message: expect.any(String), uri, fields: [expect.objectContaining({ field: "params.key" })] },
    ]);
  });

  test("incoming values that do not match are absent, and logged once a field", async () => {
    const { client, log } = await agent([uri], [stamp], (call) => {
      echo(call, uri);
      call.answer({ task: taskOf("TASK_STATE_COMPLETED", { metadata: { [at]: 5 } }) });
    });
    for (const said of ["once", "twice"]) {
      const { task } = await client.sendMessage(said);
      expect(task?.ext(stamp)?.task).toEqual({});
    }
    expect(log).toEqual([expect.objectContaining({ uri, field: "task.metadata.at" })]);
  });

  test("outgoing values that do not match are rejected before they are sent", async () => {
    const { client, server } = await agent([uri], [stamp], (call) => call.answer({ task: done() }));
    const parts = [{ data: { a: "secret" }, mediaType: "application/vnd.form" }];
    const wrong = client.sendMessage({ parts, metadata: { [at]: 5 } });
    const error = (await errorOf(wrong)) as A2AError;
    expect([error.code, error.fields.map(({ field }) => field)]).toEqual([
      "InvalidParams",
      [`message.metadata["${at}"]`, "message.parts[0].data.a"],
    ]);
    expect(JSON.stringify(error.fields)).not.toContain("secret");
    expect(server.calls).toEqual([]);
    // If the request does not activate the extension, the client ignores the extension's data.
    const other = await agent([], [stamp], (call) => call.answer({ task: done() }));
    await other.client.sendMessage({ parts, metadata: { [at]: 5 } });
    // A data extension does not make the call fail, either.
    const data = await agent([uri], [{ ...stamp, kind: "data" } as typeof stamp], (call) =>
      call.answer({ task: done() }),
    );
    await data.client.sendMessage({ parts, metadata: { [at]: 5 } });
    expect(data.log).toMatchObject([{ uri, fields: [{}, {}] }]);
  });
});

describe("an extension that the card requires, and the client lacks (A2A 1.0 §4.6.1)", () => {
  test("is left to the server, whose error names it", async () => {
    const script = (call: RpcCall): void => {
      if (call.method === "GetTask") call.answer(done());
      else call.fail(-32008, "Not without it");
    };
    const { client } = await agent([{ uri, required: true }], [], script);
    await client.getTask("t1");
    for (const refused of [client.sendMessage("Go"), client.sendStreamingMessage("Go").next()]) {
      expect(await errorOf(refused)).toMatchObject({
        code: "ExtensionSupportRequired",
        message: expect.stringMatching(
          /^Not without it\. The card requires .*stamp\/v1: request them with connect\(url, /,
        ),
      });
    }
    const asking = await agent([{ uri, required: true }], [stamp], script);
    expect(await errorOf(asking.client.sendMessage("Go"))).toMatchObject({ message: "Not without it" });
  });
});

describe("`client.ext()`", () => {
  test("says how the card declares an extension, and reads and writes its values", async () => {
    const { client } = await agent([{ uri, required: true }], [stamp], (call) =>
      call.answer({ task: done({ [at]: "noon" }) }),
    );
    const own = client.ext(stamp);
    expect(own).toMatchObject({ declared: { uri, required: true }, requested: true });
    expect(own.metadata("message", { at: "noon" })).toEqual({ [at]: "noon" });
    expect(own.part("form", { a: 1 })).toEqual({ data: { a: 1 }, mediaType: "application/vnd.form" });
    expect(() => own.metadata("message", { at: 5 as never })).toThrow(TypeError);
    const { task } = await client.sendMessage("Go");
    expect(own.read(task ?? done()).task.at).toBe("noon");
    expect(own.read({ messageId: "m", role: "ROLE_AGENT", parts: [], metadata: { [at]: "one" } }).message.at).toBe(
      "one",
    );
    expect(own.read({ artifactId: "a", parts: [own.part("form", { a: 2 })] }).data.form).toEqual([{ a: 2 }]);
    const drawing = { metadata: { drawing: true }, messageId: "m", role: "ROLE_AGENT", parts: [] } as const;
    expect(
      own.read(taskOf("TASK_STATE_WORKING", { status: { state: "TASK_STATE_WORKING", message: drawing } })).subState,
    ).toBe("drawing");
  });
});

test("an invalid URI, or two in one text, is rejected before anything is sent (A2A 1.0 §4.6)", async () => {
  for (const wrong of ["drafts", "urn:a,urn:b", "urn:a:b c", "", "urn:a:b\r\nx-other: 1"]) {
    const outcomes = [[wrong], [stamp, wrong]].map((extensions) => errorOf(agent([], extensions, () => {})));
    for (const [at, error] of (await Promise.all(outcomes)).entries()) {
      expect(error).toMatchObject({ code: "InvalidParams" });
      expect((error as A2AError).fields[0]).toMatchObject({
        field: `extensions[${at}]`,
        description: expect.stringMatching(/^must be (an absolute URI without commas and spaces|a URI)$/) as string,
      });
    }
  }
});

test("two values with one URI, and values that are not extensions, are rejected", async () => {
  for (const wrong of [[stamp, stamp], [{}], [null], [5]]) {
    const error = await errorOf(agent([], wrong as never, () => {}));
    expect(error).toBeInstanceOf(A2AError);
    expect((error as A2AError).fields[0]?.field).toBe(`extensions[${wrong.length - 1}]`);
  }
});
