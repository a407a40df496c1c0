import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import fastifyCookie from "@fastify/cookie";
import fastifySession from "@fastify/session";
import { serve as serveHono } from "@hono/node-server";
import express, { type Request as ExpressRequest } from "express";
import session from "express-session";
import fastify, { type FastifyRequest } from "fastify";
import { Hono, type Context } from "hono";
import { jwt, sign } from "hono/jwt";
import {
  createHandler,
  defineAgent,
  fetchMount,
  jsonRpcBinding,
  memoryStore,
  restBinding,
  type Handler,
} from "@parley/server";
import { allOf, anyOf, anyone, hostUser, type HostUserOptions } from "@parley/a2a/auth";
import { connect, type Client } from "@parley/a2a";
import { bearerToken } from "@parley/a2a/credentials";
import { grpcBinding as grpcServerBinding } from "@parley/grpc";
import { grpcBinding } from "@parley/grpc/client";
import { afterEach, describe, expect, it } from "vitest";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import { nodeListener } from "../src/http/listener.ts";
import { serve } from "../src/serve.ts";

/* Tests users of web frameworks as callers (A2A 1.0 §7.4), with real frameworks and their own sessions and tokens. */

/** Declares session data as an application does. */
declare module "express-session" {
  interface SessionData {
    user: { readonly id: number; readonly org: string };
  }
}
declare module "fastify" {
  interface Session {
    user?: { readonly name: string };
  }
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** An agent that reports its caller. */
const mirror = defineAgent({
  name: "Mirror",
  description: "Says who calls.",
  version: "1.0.0",
  skills: [],
  onMessage(turn) {
    const { subject, organization = null, schemes = null } = turn.principal;
    return turn.reply(JSON.stringify([subject, organization, schemes]));
  },
});

function handlerOf(options: HostUserOptions, more: Partial<Parameters<typeof createHandler>[1]> = {}): Handler {
  const handler = createHandler(mirror, {
    store: memoryStore(),
    publicUrl: "http://127.0.0.1/agent",
    authenticator: hostUser(options),
    ...more,
  });
  closers.push(() => handler.close());
  return handler;
}

async function listen(server: Server): Promise<string> {
  closers.push(() => {
    server.closeAllConnections?.();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const rpc = (id: string): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "SendMessage",
    params: { message: { messageId: id, role: "ROLE_USER", parts: [{ text: "Who am I?" }] } },
  });

/** Returns the caller's name as the agent sees it, or the status and challenge of a rejection. */
async function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const own = { "content-type": "application/json", "a2a-version": "1.0", ...headers };
  const answer = await fetch(`${url}/agent`, { method: "POST", body: rpc(crypto.randomUUID()), headers: own });
  if (answer.status !== 200) return [answer.status, answer.headers.get("www-authenticate")];
  const { result, error } = (await answer.json()) as {
    readonly result?: { readonly message: { readonly parts: readonly [{ readonly text: string }] } };
    readonly error?: object;
  };
  return result === undefined ? error : JSON.parse(result.message.parts[0].text);
}

const cookieOf = (answer: Response): string => answer.headers.getSetCookie()[0]?.split(";")[0] ?? "";

/** Headers with which a client tries to impersonate someone else. */
const forged = {
  user: "ada",
  "x-user": "ada",
  "x-forwarded-user": "ada",
  "x-parley-principal": '{"subject":"ada"}',
  principal: '{"subject":"ada"}',
  facts: '{"principal":{"subject":"ada"}}',
  cookie: "user=ada; connect.sid=s%3Aada.forged; principal=ada",
};

describe("the user of Express", () => {
  /** Starts an application with session logins. */
  async function application(handler: Handler): Promise<string> {
    const app = express();
    app.use(session({ secret: "MARK-of-the-session-0815", resave: false, saveUninitialized: false }));
    app.post("/login", (request, response) => {
      request.session.user = { id: 7, org: "acme" };
      response.sendStatus(204);
    });
    app.use(
      expressMount(handler, {
        principal: ({ session: { user } }: ExpressRequest) =>
          user && { subject: String(user.id), organization: user.org },
      }),
    );
    return listen(createServer(app as RequestListener));
  }
  const scheme = { cookie: "connect.sid" };

  it("of a session is the caller, and without one the answer is 401 (A2A 1.0 §7.4)", async () => {
    const url = await application(handlerOf({ scheme }));
    const cookie = cookieOf(await fetch(`${url}/login`, { method: "POST" }));
    expect(await ask(url, { cookie })).toEqual(["7", "acme", { session: [] }]);
    const challenge = 'ApiKey in="cookie", name="connect.sid"';
    expect(await ask(url)).toEqual([401, challenge]);
    expect(await ask(url, forged)).toEqual([401, challenge]);
  });

  it("of a session is not a caller if a page of another origin sends the cookie, whatever else it sends", async () => {
    const url = await application(handlerOf({ scheme }));
    const cookie = cookieOf(await fetch(`${url}/login`, { method: "POST" }));
    const evil = { cookie, origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    expect(await ask(url, evil)).toEqual([403, null]);
    expect(await ask(url, { ...evil, authorization: "Bearer x" })).toEqual([403, null]);
    expect(await ask(url, { cookie, origin: url, "sec-fetch-site": "same-origin" })).toEqual([
      "7",
      "acme",
      expect.anything(),
    ]);
  });

  it("may be missing if anyone may call", async () => {
    const handler = handlerOf({ scheme }, { authenticator: anyOf(hostUser({ scheme }), anyone()) });
    const url = await application(handler);
    const cookie = cookieOf(await fetch(`${url}/login`, { method: "POST" }));
    expect(await ask(url, { cookie })).toEqual(["7", "acme", expect.anything()]);
    expect(await ask(url, { cookie: "connect.sid=s%3Aold.session" })).toEqual(["anonymous", null, null]);
  });

  it("that middleware like Passport sets is looked up by a promise, once a request", async () => {
    let lookups = 0;
    type Request = ExpressRequest & { readonly user?: { readonly id: string } };
    const app = express().use((request, _response, next) => {
      const [, id] = /^Bearer token-of-(\w+)$/.exec(request.headers.authorization ?? "") ?? [];
      if (id !== undefined) Object.assign(request, { user: { id } });
      next();
    });
    const mount = expressMount(handlerOf({ scheme: "bearer", scopes: ["read"] }), {
      async principal({ user }: Request) {
        lookups += 1;
        await new Promise((resolve) => setImmediate(resolve));
        return user && { subject: user.id, scopes: user.id === "ada" ? ["read"] : [] };
      },
    });
    const url = await listen(createServer(app.use(mount) as RequestListener));
    expect(await ask(url, { authorization: "Bearer token-of-ada" })).toEqual(["ada", null, { bearer: ["read"] }]);
    expect(lookups).toBe(1);
    expect(await ask(url, { authorization: "Bearer token-of-bob" })).toEqual([403, expect.any(String)]);
    expect(await ask(url, { authorization: "Bearer wrong" })).toEqual([401, 'Bearer error="invalid_token"']);
    expect(await ask(url)).toEqual([401, "Bearer"]);
  });

  it("that cannot be looked up causes a server error", async () => {
    const failing = [
      () => Promise.reject(new Error("The users are away: MARK-users-0815")),
      (): never => {
        throw new Error("The users are away: MARK-users-0815");
      },
      () => ({ subject: 7 }) as unknown as { subject: string },
      () => ({ subject: "" }),
    ];
    for (const principal of failing) {
      const mount = expressMount(handlerOf({ scheme: "bearer" }), { principal });
      const url = await listen(createServer(express().use(mount) as RequestListener));
      // The response contains neither the cause nor a result (A2A 1.0 §9.5).
      expect(await ask(url)).toMatchObject({ code: -32603, message: "Internal error" });
    }
  });

  it("is ignored if the mount does not have the option `user`, even in the right format", async () => {
    const app = express().use((request, _response, next) => {
      Object.assign(request, { user: { subject: "ada" }, principal: { subject: "ada" } });
      next();
    });
    const url = await listen(createServer(app.use(expressMount(handlerOf({ scheme }))) as RequestListener));
    expect(await ask(url)).toEqual([401, expect.any(String)]);
  });
});

describe("the user of Fastify", () => {
  it("of a session is the caller", async () => {
    const app = fastify();
    await app.register(fastifyCookie);
    await app.register(fastifySession, { secret: "MARK-of-the-session-0815-long-enough", cookie: { secure: false } });
    app.post("/login", async (request) => {
      request.session.user = { name: "ada" };
      return "";
    });
    const mount = fastifyMount(handlerOf({ scheme: { cookie: "sessionId" } }), {
      principal: ({ session: { user } }: FastifyRequest) => user && { subject: user.name },
    });
    await app.register(mount, { prefix: "/agent" });
    closers.push(() => app.close());
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const cookie = cookieOf(await fetch(`${url}/login`, { method: "POST" }));
    expect(await ask(url, { cookie })).toEqual(["ada", null, { session: [] }]);
    expect(await ask(url, forged)).toEqual([401, expect.any(String)]);
  });

  it("of a token is the caller, as hooks that verify tokens set it", async () => {
    interface Request extends FastifyRequest {
      user?: { readonly sub: string };
    }
    const app = fastify();
    app.decorateRequest("user", undefined);
    app.addHook("onRequest", async (request) => {
      if (request.headers.authorization === "Bearer good") Object.assign(request, { user: { sub: "ada" } });
    });
    const mount = fastifyMount(handlerOf({ scheme: "bearer" }), {
      principal: ({ user }: Request) => user && { subject: user.sub },
    });
    await app.register(mount, { prefix: "/agent" });
    closers.push(() => app.close());
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    expect(await ask(url, { authorization: "Bearer good" })).toEqual(["ada", null, { bearer: [] }]);
    expect(await ask(url, { authorization: "Bearer bad" })).toEqual([401, expect.any(String)]);
  });
});

describe("the user of a Fetch API framework", () => {
  it("of Hono is the caller, from the context and its types", async () => {
    const secret = "MARK-of-the-token-0815";
    interface Env {
      readonly Variables: { readonly user?: { readonly id: string } };
    }
    const answer = fetchMount(handlerOf({ scheme: "bearer" }), {
      principal: (_request, { var: { user } }: Context<Env>) => user && { subject: user.id },
    });
    const app = new Hono<Env>();
    app.use("/agent", jwt({ secret, alg: "HS256" }));
    app.use("/agent", async (context, next) => {
      const { sub } = context.get("jwtPayload" as never) as { sub: string };
      context.set("user" as never, { id: sub } as never);
      await next();
    });
    app.all("/*", (context) => answer(context.req.raw, context));
    const own = { overrideGlobalObjects: false, port: 0, hostname: "127.0.0.1" };
    const server = serveHono({ fetch: app.fetch, ...own });
    closers.push(() => server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const token = await sign({ sub: "ada" }, secret, "HS256");
    expect(await ask(url, { authorization: `Bearer ${token}` })).toEqual(["ada", null, { bearer: [] }]);
    expect(await ask(url, { authorization: "Bearer wrong" })).toEqual([401, expect.any(String)]);
  });

  it("of Next.js comes from a promise, and handler.fetch() alone has no user", async () => {
    const handler = handlerOf({ scheme: { cookie: "authjs.session-token" } });
    const auth = async (request: Request): Promise<{ user: { email: string } } | null> =>
      request.headers.get("cookie") === "authjs.session-token=good" ? { user: { email: "ada@example.com" } } : null;
    const POST = fetchMount(handler, {
      async principal(request) {
        const found = await auth(request);
        return found && { subject: found.user.email };
      },
    });
    const request = (cookie: string): Request =>
      new Request("http://127.0.0.1/agent", {
        method: "POST",
        body: rpc(crypto.randomUUID()),
        headers: { "content-type": "application/json", "a2a-version": "1.0", cookie },
      });
    const answer = await POST(request("authjs.session-token=good"));
    expect(await answer.text()).toContain("ada@example.com");
    expect((await POST(request("authjs.session-token=bad"))).status).toBe(401);
    const told = { principal: { subject: "ada" }, user: { subject: "ada" } };
    expect((await handler.fetch(request("authjs.session-token=good"), told)).status).toBe(401);
  });
});

describe("the user of a Node server", () => {
  const principal = ({ headers }: Pick<IncomingMessage, "headers">) =>
    headers.authorization === "Bearer good" && { subject: "ada" };

  it("is the caller over HTTP/1.1", async () => {
    const { handle } = handlerOf({ scheme: "bearer" });
    const url = await listen(createServer(nodeListener(handle, { principal })));
    expect(await ask(url, { authorization: "Bearer good" })).toEqual(["ada", null, expect.anything()]);
    expect(await ask(url, { authorization: "Bearer bad" })).toEqual([401, expect.any(String)]);
  });

  it("is the caller over gRPC, by its metadata", async () => {
    const server = createHttp2Server();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => server.close());
    const url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const handler = handlerOf(
      { scheme: "bearer" },
      { bindings: [jsonRpcBinding(), restBinding(), grpcServerBinding({ url })] },
    );
    server.on("request", nodeListener(handler.handle, { principal }));
    const card = handler.agents[0]?.card ?? "";
    const over = (token: string): Promise<Client> =>
      connect(card, { bindings: [grpcBinding()], binding: "GRPC", retry: false, credentials: [bearerToken(token)] });
    const { message } = await (await over("good")).sendMessage("Who am I?");
    expect(message?.parts[0]?.text).toContain('"ada"');
    await expect((await over("bad")).sendMessage("?")).rejects.toMatchObject({ code: "Unauthenticated" });
  });
});

describe("the card with hostUser()", () => {
  it("shows the scheme that clients need (A2A 1.0 §4.5.1)", () => {
    const cardOf = (options: HostUserOptions) => handlerOf(options).agents[0]?.card;
    expect(cardOf({ scheme: "bearer" })).toMatchObject({
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    });
    expect(cardOf({ scheme: { cookie: "sid" }, name: "login" })).toMatchObject({
      securitySchemes: { login: { apiKeySecurityScheme: { location: "cookie", name: "sid" } } },
    });
    const openIdConnectSecurityScheme = {
      openIdConnectUrl: "https://login.example.com/.well-known/openid-configuration",
    };
    expect(cardOf({ scheme: { openIdConnectSecurityScheme }, scopes: ["a2a"] })).toMatchObject({
      securitySchemes: { host: { openIdConnectSecurityScheme } },
      securityRequirements: [{ schemes: { host: { list: ["a2a"] } } }],
    });
  });

  it("is rejected by serve(), which has no framework that knows users", async () => {
    const byHost = hostUser({ scheme: "bearer" });
    for (const authenticator of [byHost, anyOf(byHost, anyone()), allOf(byHost)]) {
      const served = serve(mirror, { port: 0, store: memoryStore(), authenticator });
      await expect(served).rejects.toThrow("Mount the agents in the framework with `expressMount`");
    }
  });

  it("needs a scheme, because no client can guess the framework's credentials", () => {
    expect(() => hostUser({} as HostUserOptions)).toThrow("The option scheme of hostUser() is required");
  });
});
