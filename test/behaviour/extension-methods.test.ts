import { A2AError, anonymous, createHandler, defineAgent, memoryStore, type Interceptor } from "@parley/server";
import type { CallContext } from "@parley/a2a/protocol";
import type { AuditRecord, MethodName } from "@parley/a2a/internal/protocol/index";
import type { StandardSchema } from "@parley/a2a/internal/model/index";
import { bearer } from "@parley/a2a/auth";
import { connect } from "@parley/a2a";
import {
  defineExtension,
  extensionMethod,
  methodRoute,
  type AnyExtension,
  type ExtensionCall,
  type ExtensionMethods,
} from "@parley/a2a/extensions";
import { grpcBinding } from "@parley/grpc/client";
import { grpcWebBinding } from "@parley/grpc/web";
import { serve, type ServeOptions } from "@parley/node";
import { describe, expect, onTestFinished, test } from "vitest";

/** Tests extension methods (A2A 1.0 §4.6; topic "Extensions", method extensions), over every binding and version. */

const uri = "https://example.com/extensions/notes/v1";

interface Query {
  readonly text: string;
  readonly limit?: string | number;
}

/** Creates a schema by hand, in the standard form that schema libraries use. */
function schemaOf<T>(fits: (value: Record<string, unknown>) => string | undefined): StandardSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate(value) {
        const wrong = fits(value as Record<string, unknown>);
        return wrong === undefined ? { value: value as T } : { issues: [{ message: "is wrong", path: [wrong] }] };
      },
    },
  };
}

const query = schemaOf<Query>(
  (value) =>
    (typeof value["text"] !== "string" && "text") ||
    Object.keys(value).find((name) => !["text", "limit"].includes(name)) ||
    undefined,
);
const found = schemaOf<{ readonly notes: readonly string[] }>((value) =>
  Array.isArray(value["notes"]) ? undefined : "notes",
);

const calls: ExtensionCall[] = [];

const notes = defineExtension({
  uri,
  description: "Finds notes",
  kind: "method",
  methods: {
    "notes/find": extensionMethod({
      request: query,
      response: found,
      idempotent: true,
      rest: { method: "POST", path: "/notes:find" },
      grpc: "/example.notes.v1.Notes/FindNotes",
      async onCall({ text, limit }, call) {
        calls.push(call);
        if (text === "throw") throw new Error("the connection string is secret");
        if (text === "refuse") throw new A2AError("TaskNotFound", "No such book", { metadata: { book: "7" } });
        if (text === "break") return { notes: "none" } as never;
        if (text === "nothing") return undefined as never;
        if (text === "tasks") {
          const { payload } = await call.service.call("ListTasks", {}, call.context);
          return { notes: payload.value.tasks.map(({ id }) => id) };
        }
        return { notes: [`${text} for ${call.principal.subject}`, String(limit ?? "")] };
      },
    }),
    "notes/read": extensionMethod({
      request: query,
      response: found,
      jsonrpc: "ReadNotes",
      rest: { method: "GET", path: "/notes/{text}" },
      grpc: "/example.notes.v1.Notes/ReadNotes",
      onCall: ({ text, limit }) => ({ notes: [text, JSON.stringify(limit)] }),
    }),
  },
});

function agentOf(name: string, extensions: readonly AnyExtension[] = []) {
  return defineAgent({
    name,
    description: "Keeps notes",
    version: "1.0.0",
    skills: [],
    extensions,
    async *onMessage(turn) {
      yield turn.completed(turn.text);
    },
  });
}

const authenticator = bearer({
  "ada-token": { subject: "ada" },
  "bob-token": { subject: "bob" },
  "eve-token": { subject: "eve" },
});

interface Logged {
  readonly message: string;
  readonly fields: unknown;
}

async function served(agents: Parameters<typeof serve>[0], options: Partial<ServeOptions> = {}) {
  const lines: Logged[] = [];
  const log = (message: string, fields?: unknown): void => void lines.push({ message, fields });
  const server = await serve(agents, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: { debug: log, info: log, warn: log, error: log },
    authenticator,
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return { server, lines };
}

const bindings = {
  JSONRPC: ["JSONRPC", grpcBinding()],
  "HTTP+JSON": ["HTTP+JSON", grpcBinding()],
  GRPC: ["GRPC", grpcBinding()],
  "gRPC-Web": ["GRPC", grpcWebBinding()],
} as const;

type Binding = keyof typeof bindings;

const interfaces = (Object.keys(bindings) as Binding[]).flatMap((binding) =>
  (["1.0", "0.3"] as const).map((version) => ({ binding, version })),
);

interface Asked {
  readonly binding: Binding;
  readonly version: string;
  readonly as?: string;
  readonly extensions?: readonly string[];
}

/** Returns a function that calls the extension's methods like a client of one interface. */
async function caller(
  card: Parameters<typeof connect>[0],
  { binding, version, as = "ada", extensions = [uri] }: Asked,
) {
  const [name, grpc] = bindings[binding];
  const headers = as === "" ? {} : { authorization: `Bearer ${as}-token` };
  const client = await connect(card, { binding: name, version, headers, bindings: [grpc] });
  return (method: MethodName, request: object, more: Partial<CallContext> = {}) => {
    const route = methodRoute(method, (notes.methods as ExtensionMethods)[method] as never);
    const context = { principal: anonymous, version, extensions, outgoing: { method: route }, ...more };
    return client.service.call(method, request as never, context);
  };
}

async function refusal(call: Promise<unknown>): Promise<A2AError> {
  const thrown = await call.then(
    () => expect.fail("It was not refused"),
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(A2AError);
  return thrown as A2AError;
}

/** Returns whether an interface can reach one of several agents. A 0.3 gRPC call cannot name an agent, so such cards have no 0.3 gRPC interface. */
const reaches = (binding: Binding, version: string) => version !== "0.3" || bindings[binding][0] !== "GRPC";

const cardOf = ({ server }: Awaited<ReturnType<typeof served>>, at = 0) => server.agents[at]?.card ?? "";

describe.each(interfaces)("a method of an extension over $binding of $version", ({ binding, version }) => {
  test("is answered, with the echo of what was activated (A2A 1.0 §4.6)", async () => {
    const host = await served(agentOf("Notes", [notes]));
    const call = await caller(cardOf(host), { binding, version });
    const { payload, extensions } = await call("notes/find", { text: "milk", limit: 3 });
    expect(payload.value).toEqual({ notes: ["milk for ada", "3"] });
    expect(extensions).toEqual([uri]);
    const context = calls.at(-1);
    expect(context).toMatchObject({ principal: { subject: "ada" }, extensions: [uri], card: { name: "Notes" } });
    expect(context?.context.version).toBe(version);
    // The call uses GET, with one field in the path, and all others as text in the query.
    const read = await call("notes/read", { text: "a/b c", limit: "2" });
    expect(read.payload.value).toEqual({ notes: ["a/b c", '"2"'] });
  });

  test("is called by client.ext(), which requests the extension automatically", async () => {
    const host = await served(agentOf("Notes", [notes]));
    const [name, grpc] = bindings[binding];
    const headers = { authorization: "Bearer ada-token" };
    const client = await connect(cardOf(host), {
      binding: name,
      version,
      headers,
      bindings: [grpc],
      extensions: [notes],
    });
    expect(await client.ext(notes).call("notes/find", { text: "milk" })).toEqual({ notes: ["milk for ada", ""] });
    expect((await refusal(client.ext(notes).call("notes/find", { text: "refuse" }))).code).toBe("TaskNotFound");
  });

  test("is a MethodNotFound of client.ext() if the card does not declare the extension", async () => {
    const [name, grpc] = bindings[binding];
    const headers = { authorization: "Bearer ada-token" };
    const card = cardOf(await served(agentOf("Plain")));
    const client = await connect(card, { binding: name, version, headers, bindings: [grpc], extensions: [notes] });
    expect(await refusal(client.ext(notes).call("notes/find", { text: "milk" }))).toMatchObject({
      code: "MethodNotFound",
      message: `The agent has no method notes/find: its card does not declare the extension ${uri}`,
    });
  });

  test("has the caller's own rights in the operations that it calls", async () => {
    const host = await served(agentOf("Notes", [notes]), {
      authorizer: ({ operation, principal }) =>
        operation === "ListTasks" && principal.subject === "bob" ? "deny" : "allow",
    });
    const ada = await connect(cardOf(host), { headers: { authorization: "Bearer ada-token" } });
    const { task } = await ada.sendMessage("mine");
    const tasks = { text: "tasks" };
    const asAda = await caller(cardOf(host), { binding, version });
    expect((await asAda("notes/find", tasks)).payload.value).toEqual({ notes: [task?.id] });
    const asEve = await caller(cardOf(host), { binding, version, as: "eve" });
    expect((await asEve("notes/find", tasks)).payload.value).toEqual({ notes: [] });
    const asBob = await caller(cardOf(host), { binding, version, as: "bob" });
    expect(await refusal(asBob("notes/find", tasks))).toMatchObject({ code: "PermissionDenied" });
  });

  test("rejects callers without credentials, without permission, and of another tenant (A2A 1.0 §7)", async () => {
    const audited: AuditRecord[] = [];
    const asked: unknown[] = [];
    const open = { agent: agentOf("Open", [notes]), id: "/open" };
    const several = [
      { ...open, path: "/open" },
      { agent: agentOf("Closed", [notes]), path: "/closed" },
    ];
    const host = await served(reaches(binding, version) ? several : [open], {
      audit: (record) => void audited.push(record),
      authorizer({ operation, principal, agent, taskId }) {
        asked.push([operation, principal.subject, agent, taskId]);
        return agent === "/open" && principal.subject === "ada" ? "allow" : "deny";
      },
    });
    const before = calls.length;
    const nobody = await caller(cardOf(host), { binding, version, as: "" });
    expect((await refusal(nobody("notes/find", { text: "milk" }))).code).toBe("Unauthenticated");
    const bob = await caller(cardOf(host), { binding, version, as: "bob" });
    expect((await refusal(bob("notes/find", { text: "milk", taskId: "t1" }))).code).toBe("PermissionDenied");
    expect(asked.at(-1)).toEqual(["notes/find", "bob", "/open", "t1"]);
    // The server checks credentials first, so that a rejected caller does not learn what the agent supports.
    expect((await refusal(nobody("notes/find", {}, { extensions: [] }))).code).toBe("Unauthenticated");
    expect((await refusal(bob("notes/find", {}, { extensions: [] }))).code).toBe("PermissionDenied");
    if (reaches(binding, version)) {
      const elsewhere = await caller(cardOf(host, 1), { binding, version });
      expect((await refusal(elsewhere("notes/find", { text: "milk" }))).code).toBe("PermissionDenied");
    }
    expect(calls).toHaveLength(before);
    expect(audited.filter(({ event }) => event === "authorization")).toContainEqual(
      expect.objectContaining({ operation: "notes/find", subject: "bob", agent: "/open", outcome: "refused" }),
    );
  });

  test("needs the extension in the request, and on the card (§3.3.2, §4.6)", async () => {
    const host = await served(agentOf("Notes", [notes]));
    const call = await caller(cardOf(host), { binding, version, extensions: [] });
    const inactive = await refusal(call("notes/find", { text: "milk" }));
    expect(inactive.code).toBe("ExtensionSupportRequired");
    // A 0.3 JSON-RPC error has only a number and a message.
    if (binding !== "JSONRPC" || version !== "0.3") expect(inactive.metadata).toEqual({ extensions: uri });
    expect(inactive.message).toContain(uri);
    const several = [
      { agent: agentOf("Notes", [notes]), path: "/notes" },
      { agent: agentOf("Plain"), path: "/plain" },
    ];
    if (!reaches(binding, version)) return;
    const plain = await caller(cardOf(await served(several), 1), { binding, version });
    const unknown = await refusal(plain("notes/find", { text: "milk" }));
    // Clients of 0.3 interpret the HTTP status 501 as an unsupported operation.
    expect(unknown.code).toBe(binding === "HTTP+JSON" && version === "0.3" ? "UnsupportedOperation" : "MethodNotFound");
    expect(unknown.message).toContain("This agent does not have the extension of this method");
  });

  test("reports errors in a request to the caller, and errors in an answer to the log", async () => {
    const host = await served(agentOf("Notes", [notes]));
    const call = await caller(cardOf(host), { binding, version });
    const wrong = await refusal(call("notes/find", { text: 5 }));
    expect(wrong.code).toBe("InvalidParams");
    expect(wrong.message).toContain("text does not fit: is wrong");
    if (binding !== "JSONRPC" || version !== "0.3") expect(wrong.fields).toMatchObject([{ field: "text" }]);

    const refused = await refusal(call("notes/find", { text: "refuse" }));
    expect(refused.code).toBe("TaskNotFound");
    expect(refused.message).toContain("No such book");

    for (const [text, line] of [
      ["throw", "failed: Error: the connection string is secret"],
      ["break", "its answer does not match its schema: notes does not fit"],
      ["nothing", "must answer a JSON object"],
    ] as const) {
      const failed = await refusal(call("notes/find", { text }));
      expect(failed.code).toBe("InternalError");
      expect(JSON.stringify([failed.message, failed.fields, failed.details])).not.toMatch(/secret|schema/);
      const { fields } =
        host.lines.find(({ fields }) => String((fields as { cause?: unknown })?.cause).includes(line)) ?? {};
      expect(fields, line).toMatchObject({ error: "InternalError" });
      host.lines.length = 0;
    }
  });

  test("goes through interceptors, observers, rate limits and limits of the body", async () => {
    const seen: unknown[] = [];
    const spy: Interceptor = (next) => ({
      call(operation, request, context) {
        seen.push(["intercepted", operation]);
        return next.call(operation, request, context);
      },
      stream: (...asked) => next.stream(...asked),
    });
    const host = await served(agentOf("Notes", [notes]), {
      interceptors: [spy],
      observer: { call: ({ operation }) => void seen.push(["observed", operation]) },
      limits: { bodyBytes: 2_000, rate: { principal: { requests: 3, per: 3_600_000 } } },
    });
    const call = await caller(cardOf(host), { binding, version });
    await call("notes/find", { text: "milk" });
    expect(seen).toEqual([
      ["observed", "notes/find"],
      ["intercepted", "notes/find"],
    ]);
    expect((await refusal(call("notes/find", { text: "x".repeat(3_000) }))).code).toMatch(
      /^(RequestTooLarge|InvalidRequest|InvalidParams)$/,
    );
    const codes: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      codes.push(
        await call("notes/find", { text: "milk" }, { outgoing: { method: onceRoute } }).then(
          () => "ok",
          (thrown: A2AError) => thrown.code,
        ),
      );
    }
    expect(codes).toContain("TooManyRequests");
  });
});

/** The same method, marked as not idempotent. Otherwise the client would retry the call, and the test would wait. */
const onceRoute = methodRoute("notes/find", {
  ...(notes.methods as ExtensionMethods)["notes/find"],
  idempotent: false,
} as never);

describe("a method of an extension", () => {
  test("has its name, its paths and its tenant on the wire", async () => {
    const host = await served([
      { agent: agentOf("North", [notes]), tenant: "north" },
      { agent: agentOf("South"), tenant: "south" },
    ]);
    const { url } = host.server;
    const headers = {
      "content-type": "application/json",
      authorization: "Bearer ada-token",
      "a2a-version": "1.0",
      "a2a-extensions": uri,
    };
    const post = (path: string, body: unknown) =>
      fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const rpc = async (method: string, params: unknown) =>
      (await post("", { jsonrpc: "2.0", id: 1, method, params })).json();

    expect(await rpc("notes/find", { text: "milk", tenant: "north" })).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: { notes: ["milk for ada", ""] },
    });
    expect(await rpc("ReadNotes", { text: "milk", tenant: "north" })).toMatchObject({ result: {} });
    expect(await rpc("notes/read", { text: "milk", tenant: "north" })).toMatchObject({ error: { code: -32601 } });
    expect(await rpc("notes/find", { text: "milk", tenant: "south" })).toMatchObject({ error: { code: -32601 } });
    expect(await rpc("notes/find", ["milk"])).toMatchObject({ error: { code: -32602 } });

    const found = await post("/north/notes:find", { text: "milk" });
    expect([found.status, found.headers.get("a2a-extensions")]).toEqual([200, uri]);
    expect(await found.json()).toEqual({ notes: ["milk for ada", ""] });
    expect((await post("/south/notes:find", { text: "milk" })).status).toBe(404);
    const read = await fetch(`${url}/north/notes/milk?limit=7&A2A-Version=1.0`, { headers });
    expect(await read.json()).toEqual({ notes: ["milk", '"7"'] });
    expect((await fetch(`${url}/north/notes:find`, { headers })).status).toBe(405);
    const old = { ...headers, "a2a-version": "0.3", "a2a-extensions": "", "x-a2a-extensions": uri };
    const at03 = await fetch(`${url}/north/notes/milk`, { headers: old });
    expect([at03.status, at03.headers.get("x-a2a-extensions")]).toEqual([200, uri]);
  });

  const add = (methods: object, at = "https://example.com/extensions/other/v1") =>
    ({ uri: at, kind: "method", methods }) as unknown as AnyExtension;
  const method = (change: object = {}) => ({
    request: query,
    response: found,
    rest: { method: "POST", path: "/other:find" },
    grpc: "/example.other.v1.Others/Find",
    onCall: () => ({ notes: [] }),
    ...change,
  });

  test.each([
    ["a name of another", { "notes/find": method() }, "its name is taken: notes/find of the extension " + uri],
    ["a JSON-RPC method of another", { "other/find": method({ jsonrpc: "ReadNotes" }) }, "notes/read of the extension"],
    ["a REST path of another", { "other/find": method({ rest: { method: "GET", path: "/notes:find" } }) }, "REST path"],
    [
      "a path that another takes",
      { "other/find": method({ rest: { method: "GET", path: "/notes/all" } }) },
      "REST path",
    ],
    ["a gRPC path of another", { "other/find": method({ grpc: "/example.notes.v1.Notes/FindNotes" }) }, "gRPC path"],
    ["a method of A2A 1.0", { "other/find": method({ jsonrpc: "GetTask" }) }, '"GetTask" is a method of A2A 1.0'],
    ["a method of A2A 0.3", { "tasks/get": method() }, '"tasks/get" is a method of A2A 0.3'],
    ["a method of A2A 0.3 that JSON-RPC lacks", { "tasks/list": method() }, '"tasks/list" is a method of A2A 0.3'],
    [
      "a path of A2A 1.0",
      { "other/find": method({ rest: { method: "POST", path: "/tasks" } }) },
      "is a path of A2A 1.0",
    ],
    ["a path of a task", { "other/find": method({ rest: { method: "GET", path: "/tasks/all" } }) }, "/tasks/{id}"],
    ["a path of A2A 0.3", { "other/find": method({ rest: { method: "GET", path: "/v1/card" } }) }, "of A2A 0.3"],
    ["a path of cards", { "other/find": method({ rest: { method: "GET", path: "/.well-known/x" } }) }, "cards"],
    ["a service of A2A", { "other/find": method({ grpc: "/lf.a2a.v1.A2AService/Find" }) }, "package of A2A"],
    ["no answer", { "other/find": method({ onCall: undefined }) }, "onCall is missing"],
    ["no name of a method", { other: method() }, "must have a slash"],
    ["no path", { "other/find": method({ rest: { method: "GET", path: "/a?b" } }) }, "rest.path"],
    ["no path of gRPC", { "other/find": method({ grpc: "Find" }) }, "grpc must be"],
    ["a package that is not a name", { "other/find": method({ grpc: "/example..Others/Find" }) }, "grpc must be"],
    ["a service that begins with a digit", { "other/find": method({ grpc: "/example.1/Find" }) }, "grpc must be"],
    ["a service named as a package of gRPC", { "other/find": method({ grpc: "/google/Find" }) }, "package of A2A"],
    [
      "a service in what is a service of another",
      { "other/find": method({ grpc: "/example.notes.v1.Notes.Others/Find" }) },
      "a name cannot be both a service and a package",
    ],
    [
      "a service that is the package of another",
      { "other/find": method({ grpc: "/example.notes/Find" }) },
      "a name cannot be both a service and a package",
    ],
  ])("is rejected when the server is created, if it has %s", (_what, methods, why) => {
    const make = () =>
      createHandler(agentOf("Notes", [notes]), {
        store: memoryStore(),
        publicUrl: "http://127.0.0.1",
        extensions: [add(methods)],
      });
    const error = (() => {
      try {
        make();
      } catch (thrown) {
        return thrown as A2AError;
      }
      return expect.fail("The server was made");
    })();
    expect(error.code).toBe("InvalidParams");
    expect(error.message).toContain(why);
    expect(error.message).toContain("https://example.com/extensions/other/v1");
  });

  test("rejects a tenant whose paths it would take", () => {
    const mounts = [{ agent: agentOf("A", [notes]), tenant: "notes" }, { agent: agentOf("B") }];
    expect(() => createHandler(mounts, { store: memoryStore(), publicUrl: "http://127.0.0.1" })).toThrow(
      /tenant cannot be "notes", which is a path of the REST binding/,
    );
  });

  test("may be the same of several agents", () => {
    const options = { store: memoryStore(), publicUrl: "http://127.0.0.1", extensions: [notes] };
    const mounts = [
      { agent: agentOf("A", [notes]), path: "/a" },
      { agent: agentOf("B", [notes]), path: "/b" },
    ];
    expect(createHandler(mounts, options).host.methods).toHaveLength(2);
    expect(createHandler(agentOf("C"), { ...options, extensions: [] }).host.methods).toBeUndefined();
  });
});
