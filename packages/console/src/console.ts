import { A2AError, toA2AError } from "@parley/a2a/internal/model/index";
import type { RouteMount } from "@parley/server";
import { bindings, type AgentEntry, type ConnectRequest, type RawRequest, type Session } from "./api.ts";
import { asset } from "./assets.ts";
import type { Inspector } from "./inspector.ts";

/** What a console shows. */
export interface ConsoleOptions {
  /** Its path below the URL of the server. Default `/console`. */
  readonly path?: string;
  /** The agents that the server serves, or an inspector, whose user connects to agents. */
  readonly agents: (() => readonly AgentEntry[]) | Inspector;
}

/**
 * The console, for the option `routes` of `serve()`: the application, which anyone may load, and its data, for callers whom the
 * authenticator of the server accepts.
 */
export function consoleRoutes({ path = "/console", agents }: ConsoleOptions): readonly RouteMount[] {
  return [
    { path, access: "anyone", answer: (request, { below }) => application(request, below) },
    { path: `${path}/api`, answer: (request, { below, closing }) => answer(agents, request, below, closing) },
  ];
}

async function application(request: Request, below: string): Promise<Response | undefined> {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  // Relative addresses of the page need the slash.
  if (below === "")
    return new Response(null, { status: 308, headers: { location: `${new URL(request.url).pathname}/` } });
  return asset(below);
}

async function answer(
  agents: ConsoleOptions["agents"],
  request: Request,
  below: string,
  closing: AbortSignal,
): Promise<Response | undefined> {
  const inspector = typeof agents === "function" ? undefined : agents;
  const what = `${request.method} ${below}`;
  if (what === "GET /session") return Response.json(sessionOf(agents));
  if (inspector === undefined) return undefined;
  if (what === "GET /wire") return wire(inspector, request, closing);
  try {
    if (what === "POST /agents") return Response.json(await inspector.connect(connectRequest(await request.json())));
    if (what === "POST /wire") return done(inspector.send(rawRequest(await request.json())));
    const [, id] = /^DELETE \/agents\/(\w+)$/.exec(what) ?? [];
    return id === undefined ? undefined : await done(inspector.disconnect(id));
  } catch (thrown) {
    return failed(thrown);
  }
}

async function done(work: Promise<void>): Promise<Response> {
  await work;
  return new Response(null, { status: 204 });
}

function sessionOf(agents: ConsoleOptions["agents"]): Session {
  return typeof agents === "function"
    ? { mode: "server", agents: agents() }
    : { mode: "inspect", agents: agents.agents() };
}

function wire({ log }: Inspector, request: Request, closing: AbortSignal): Response {
  const after = Number(new URL(request.url).searchParams.get("after") ?? 0);
  const body = log.lines(
    Number.isSafeInteger(after) && after >= 0 ? after : 0,
    AbortSignal.any([request.signal, closing]),
  );
  return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
}

/** What could not be done, for the user: why, as the client says it. */
function failed(thrown: unknown): Response {
  const { code, message } = thrown instanceof SyntaxError ? invalid("The body must be JSON") : toA2AError(thrown);
  return Response.json({ error: { code, message } }, { status: code === "InvalidParams" ? 400 : 502 });
}

const invalid = (message: string): A2AError => new A2AError("InvalidParams", message);

function connectRequest(given: unknown): ConnectRequest {
  const { url, binding, headers } = objectOf(given);
  if (typeof url !== "string" || url === "") throw invalid("url must be the URL of an agent");
  const named = bindings.find((name) => name === binding);
  if (binding !== undefined && named === undefined) throw invalid(`binding must be one of ${bindings.join(", ")}`);
  return {
    url,
    ...(named !== undefined && { binding: named }),
    ...(headers !== undefined && { headers: texts(headers) }),
  };
}

function rawRequest(given: unknown): RawRequest {
  const { agent, method, url, headers = {}, body } = objectOf(given);
  if (typeof agent !== "string") throw invalid("agent must be the id of a connected agent");
  if (typeof method !== "string" || !/^[A-Z]{1,20}$/.test(method)) throw invalid("method must be one of HTTP");
  if (typeof url !== "string" || !/^https?:/i.test(url)) throw invalid("url must be an HTTP URL");
  if (body !== undefined && typeof body !== "string") throw invalid("body must be text");
  return { agent, method, url, headers: texts(headers), ...(body !== undefined && { body }) };
}

function objectOf(given: unknown): Readonly<Record<string, unknown>> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw invalid("The body must be an object");
  return { ...given };
}

function texts(given: unknown): Readonly<Record<string, string>> {
  const all = Object.entries(objectOf(given));
  return Object.fromEntries(
    all.map(([name, value]) => {
      if (typeof value !== "string") throw invalid("headers must be texts");
      return [name, value] as const;
    }),
  );
}
