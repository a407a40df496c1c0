import {
  auditLog,
  createHandler,
  defineAgent,
  memoryStore,
  type AgentBehaviour,
  type Store,
  type Turn,
} from "@parley/server";
import { serve, type Logger, type ServeOptions } from "@parley/node";
import { apiKey } from "@parley/a2a/auth";
import { connect } from "@parley/a2a";
import { callContext, inProcess } from "@parley/testing";
import { grpcBinding } from "@parley/grpc/client";
import { describe, expect, it, onTestFinished } from "vitest";
import { placeOfTest, stores } from "./stores.ts";

/** Tests the request headers that an agent declares in `requestHeaders`. The server neither passes on nor stores any other header. */

type Headers = Readonly<Record<string, string>>;

const sent: Headers = {
  "accept-language": "de-CH",
  "x-request-id": "id-that-must-not-be-stored",
  "x-secret": "header-that-must-not-be-told",
};
const all = { "accept-language": "de-CH", "x-request-id": "id-that-must-not-be-stored" };
const stored = { "accept-language": "de-CH" };

const described = { name: "Headers", description: "Sees what came", version: "1", skills: [] } as const;
const requestHeaders = ["X-Request-Id", { name: "accept-language", store: true }, "constructor"] as const;

function served(store: Store, seen: Headers[]) {
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const agent = defineAgent({
    ...described,
    resumable: true,
    requestHeaders,
    async *onMessage(turn: Turn) {
      seen.push({ ...turn.headers });
      expect(turn.headers["constructor"]).toBeUndefined();
      if (turn.text === "reply") return turn.reply("Hello");
      if (turn.text === "ask") return yield turn.inputRequired("Which?");
      yield turn.working("begun");
      if (turn.text === "wait" && turn.attempt === 1) {
        await Promise.race([left, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      }
      return undefined;
    },
  });
  const made = inProcess(agent, { store, conversations: "store" });
  const send = async (text: string, taskId?: string, returnImmediately = false) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text }] };
    const request = {
      message: taskId === undefined ? message : { ...message, taskId },
      configuration: { returnImmediately },
    };
    const context = callContext({ subject: "ada", headers: (name) => sent[name] });
    return (await made.service.call("SendMessage", request, context)).payload.value.task?.id ?? "";
  };
  return { ...made, send, leave };
}

describe.each(stores)("the declared headers of a request, on %s", (kind) => {
  it("are complete in a turn that begins at once, and only those with `store` in a turn that waited or was resumed", async () => {
    const place = await placeOfTest(kind);
    const store = await place.open();

    const seen: Headers[] = [];
    const first = served(store, seen);
    await first.send("reply");
    const asked = await first.send("ask");
    await first.send("Go", asked);
    expect(seen).toEqual([all, all, all]);

    const task = await first.send("wait", undefined, true);
    await expect.poll(() => seen.length).toBe(4);
    await first.send("queued", task, true);
    first.leave();
    await expect.poll(() => seen.length).toBe(5);
    expect(seen.slice(3)).toEqual([all, stored]);

    const second = served(store, seen);
    await second.send("wait", undefined, true);
    await expect.poll(() => seen.length).toBe(6);
    await second.engine.close();
    await first.engine.close();
    if (kind !== "memory") {
      await store.close();
      const bytes = await place.written();
      expect(bytes).toContain("de-CH");
      for (const secret of ["must-not-be", "x-request-id", "x-secret"]) expect(bytes).not.toContain(secret);
    }

    const reopened = await place.open();
    onTestFinished(() => reopened.close());
    const third = served(reopened, seen);
    onTestFinished(() => third.engine.close());
    await expect.poll(() => seen.length).toBe(7);
    expect(seen[6]).toEqual(stored);
  });
});

/** Starts a server with all bindings, whose agent reports the headers that it gets. */
async function over(options: Partial<ServeOptions> = {}, behaviour: Partial<AgentBehaviour> = { requestHeaders }) {
  const agent = defineAgent({
    ...described,
    ...behaviour,
    onMessage: (turn) => turn.reply(JSON.stringify({ ...turn.headers })),
  });
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: false,
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

describe("the declared headers of a request", () => {
  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])(
    "arrive over %s, with those of gRPC as its metadata (A2A 1.0 §3.2.6)",
    async (binding) => {
      const server = await over();
      for (const version of ["1.0", "0.3"]) {
        const own = { binding, version, headers: sent, ...(binding === "GRPC" && { bindings: [grpcBinding()] }) };
        const { message } = await (await connect(server.agents[0]?.card ?? "", own)).sendMessage("?");
        expect(JSON.parse(message?.parts[0]?.text ?? "")).toEqual(all);
      }
    },
  );

  it("are absent if the agent declares none", async () => {
    const server = await over({}, {});
    const client = await connect(server.url, { headers: sent });
    expect((await client.sendMessage("?")).message?.parts[0]?.text).toBe("{}");
  });

  it("are read by interceptors and the authorizer, too, and are in no log and no audit", async () => {
    const lines: string[] = [];
    const note = (...parts: readonly unknown[]): void => void lines.push(JSON.stringify(parts));
    const logger: Logger = { debug: note, info: note, warn: note, error: note };
    const read: (string | undefined)[] = [];
    const server = await over({
      logger,
      audit: auditLog(logger),
      authenticator: apiKey({ "key-of-ada-0123456789": { subject: "ada" } }),
      authorizer({ context }) {
        read.push(context.headers?.("accept-language"));
        return "allow";
      },
      interceptors: [
        (next) => ({
          ...next,
          call(operation, request, context) {
            read.push(context.headers?.("x-request-id"));
            return next.call(operation, request, context);
          },
        }),
      ],
    });
    const client = await connect(server.url, { headers: { ...sent, "x-api-key": "key-of-ada-0123456789" } });
    expect((await client.sendMessage("?")).message?.parts[0]?.text).toBe(
      JSON.stringify(all, ["x-request-id", "accept-language"]),
    );
    await expect(client.getTask("unknown")).rejects.toMatchObject({ code: "TaskNotFound" });
    await expect((await connect(server.url, { headers: sent, retry: false })).getTask("1")).rejects.toMatchObject({
      code: "Unauthenticated",
    });
    expect(read).toContain("de-CH");
    expect(read).toContain("id-that-must-not-be-stored");
    expect(lines.join("\n")).toContain("authentication");
    expect(lines.join("\n")).not.toMatch(/must-not-be|de-CH/);
  });

  it("may take 8 KiB together, and a request with more is rejected", async () => {
    const server = await over({}, { requestHeaders: ["x-one", "x-two"] });
    const ask = async (one: number, two: number) => {
      const headers = { "x-one": "a".repeat(one), "x-two": "b".repeat(two) };
      return (await connect(server.url, { headers, retry: false })).sendMessage("?");
    };
    expect((await ask(4096, 4096)).message).toBeDefined();
    await expect(ask(4096, 4097)).rejects.toMatchObject({ code: "RequestTooLarge" });
  });

  it.each([
    "Authorization",
    "cookie",
    "proxy-authorization",
    "a2a-version",
    "A2A-Extensions",
    "x-a2a-extensions",
    "last-event-id",
    "dpop",
    "grpc-timeout",
    "X-Own-Key",
    "no header",
    "",
    "x:y",
  ])("cannot be %j: the server is not created", (name) => {
    const agent = defineAgent({ ...described, requestHeaders: [{ name }], onMessage: (turn) => turn.reply("?") });
    const authenticator = apiKey({ "key-of-ada-0123456789": { subject: "ada" } }, { header: "x-own-key" });
    const create = () => createHandler(agent, { store: memoryStore(), publicUrl: "http://127.0.0.1", authenticator });
    expect(create).toThrow(`requestHeaders has ${JSON.stringify(name)}`);
  });

  it.each(["x-request-id", [null], [7], [{}]])(
    "cannot be declared as %j, which is not a list of names",
    (requestHeaders) => {
      const agent = defineAgent({
        ...described,
        requestHeaders: requestHeaders as unknown as string[],
        onMessage: (turn) => turn.reply("?"),
      });
      const create = () => createHandler(agent, { store: memoryStore(), publicUrl: "http://127.0.0.1" });
      expect(create).toThrow("cannot be served: requestHeaders ");
    },
  );
});
