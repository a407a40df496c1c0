import { A2AError, toA2AError } from "@parley/a2a/internal/model/index";
import type { RouteContext, RouteMount, ServedAgent } from "@parley/server/internal/handler";
import {
  bindings,
  loginFlows,
  type AgentEntry,
  type ConnectRequest,
  type RawRequest,
  type SchemeLogin,
  type Session,
  type SignIn,
} from "./api.ts";
import { asset } from "./assets.ts";
import type { Inspector } from "./inspector.ts";
import { answerOperators, formsOf, type ConsoleOperators } from "./operators.ts";
import { loginLines } from "./logins.ts";

/** Options of `consoleRoutes()`. */
export interface ConsoleOptions {
  /** Its path below the URL of the server. Default `/console`. */
  readonly path?: string;
  /** An inspector, whose user connects to any agents. Default: the agents of the server, which the browser calls directly. */
  readonly inspector?: Inspector;
  /** The operators' API, for users who may operate the server. Default: the console shows only the user's own tasks. */
  readonly operators?: ConsoleOperators;
}

/**
 * The console's routes, for the option `routes` of `serve()`. Anyone may load the application. Its data requires credentials that the server's
 * authenticator accepts.
 */
export function consoleRoutes({ path = "/console", inspector, operators }: ConsoleOptions = {}): readonly RouteMount[] {
  const link: RouteMount["link"] = (agent) => ({
    text: agent === undefined ? "Talk to these agents" : "Talk to this agent",
    href: `${path}/${agent === undefined ? "" : `#/talk/${encodeURIComponent(agent)}`}`,
  });
  return [
    {
      path,
      access: "anyone",
      answer: (request, context) => application(inspector, request, context),
      ...(inspector === undefined && { link }),
    },
    {
      path: `${path}/api`,
      answer: async (request, context) =>
        (await answerOperators(operators, request, { ...context, path: `${path}/api` })) ??
        answer(inspector, request, context),
    },
  ];
}

async function application(
  inspector: Inspector | undefined,
  request: Request,
  { below, agents }: RouteContext,
): Promise<Response | undefined> {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  // Relative URLs of the page need the trailing slash.
  if (below === "")
    return new Response(null, { status: 308, headers: { location: `${new URL(request.url).pathname}/` } });
  if (below === "/sign-in") return Response.json(await signInOf(inspector, agents));
  return asset(below);
}

/** How callers sign in, from the public cards. */
async function signInOf(inspector: Inspector | undefined, agents: RouteContext["agents"]): Promise<SignIn> {
  if (inspector !== undefined) return { mode: "inspect", bearer: false, basic: false, apiKeys: [] };
  const cards = (await agents()).map(({ card }) => card);
  const schemes = cards.flatMap(({ securitySchemes = {} }) => Object.values(securitySchemes));
  return { mode: "server", ...formsOf(schemes) };
}

async function answer(
  inspector: Inspector | undefined,
  request: Request,
  { below, closing, agents }: RouteContext,
): Promise<Response | undefined> {
  const what = `${request.method} ${below}`;
  if (what === "GET /session") return Response.json(await sessionOf(inspector, agents));
  if (inspector === undefined) return undefined;
  if (what === "GET /wire") return wire(inspector, request, closing);
  try {
    if (what === "POST /agents") return Response.json(await inspector.connect(connectRequest(await request.json())));
    if (what === "POST /wire") return await done(inspector.send(rawRequest(await request.json())));
    const [, method, id = "", login = ""] = /^(\w+) \/agents\/(\w+)(\/login)?$/.exec(what) ?? [];
    if (method === "DELETE" && login === "") return await done(inspector.disconnect(id));
    if (method === "DELETE") return Response.json(await inspector.logOut(id));
    if (method === "POST" && login === "") return Response.json(await inspector.reconnect(id));
    if (method === "POST") {
      const schemes = schemeLogins(await request.json());
      const ended = AbortSignal.any([request.signal, closing]);
      return lines(loginLines((page, signal) => inspector.logIn(id, schemes, page, signal), ended));
    }
    return undefined;
  } catch (thrown) {
    return failed(thrown);
  }
}

async function done(work: Promise<void>): Promise<Response> {
  await work;
  return new Response(null, { status: 204 });
}

async function sessionOf(inspector: Inspector | undefined, agents: RouteContext["agents"]): Promise<Session> {
  if (inspector !== undefined) return { mode: "inspect", agents: inspector.agents() };
  return { mode: "server", agents: (await agents()).map(entryOf) };
}

/** An agent of this server. The browser calls it over JSON-RPC 1.0 on the origin of the page. */
function entryOf({ id, url, card, cardUrl, tenant }: ServedAgent): AgentEntry {
  const called = card.supportedInterfaces.find(
    ({ protocolBinding, protocolVersion }) => protocolBinding === "JSONRPC" && protocolVersion === "1.0",
  );
  return {
    id,
    url,
    path: new URL(called?.url ?? url).pathname,
    binding: "JSONRPC",
    version: "1.0",
    card,
    cardPath: new URL(cardUrl).pathname,
    ...(tenant !== undefined && { tenant }),
  };
}

function wire({ log }: Inspector, request: Request, closing: AbortSignal): Response {
  const after = Number(new URL(request.url).searchParams.get("after") ?? 0);
  const body = log.lines(
    Number.isSafeInteger(after) && after >= 0 ? after : 0,
    AbortSignal.any([request.signal, closing]),
  );
  return lines(body);
}

function lines(body: ReadableStream<Uint8Array>): Response {
  return new Response(body, { headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" } });
}

/** An error response with the client's message, for the user. */
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

/** Maximum schemes of a login. */
const maxSchemes = 20;

function schemeLogins(given: unknown): readonly SchemeLogin[] {
  if (!Array.isArray(given) || given.length === 0 || given.length > maxSchemes)
    throw invalid(`The body must be a list of 1 to ${maxSchemes} schemes`);
  return given.map((one: unknown) => {
    const { flow, name = "", ...rest } = texts(one);
    const known = loginFlows.find((flowName) => flowName === flow);
    if (flow !== undefined && known === undefined) throw invalid(`flow must be one of ${loginFlows.join(", ")}`);
    const entered = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== ""));
    return { name, ...entered, ...(known !== undefined && { flow: known }) };
  });
}

function rawRequest(given: unknown): RawRequest {
  const { agent, method, url, headers = {}, body } = objectOf(given);
  if (typeof agent !== "string") throw invalid("agent must be the id of a connected agent");
  if (typeof method !== "string" || !/^[A-Z]{1,20}$/.test(method))
    throw invalid("method must be an HTTP method in upper case");
  if (typeof url !== "string" || !/^https?:/i.test(url) || !URL.canParse(url)) throw invalid("url must be an HTTP URL");
  if (body !== undefined && typeof body !== "string") throw invalid("body must be text");
  const lowered = Object.fromEntries(
    Object.entries(texts(headers)).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return { agent, method, url, headers: lowered, ...(body !== undefined && { body }) };
}

function objectOf(given: unknown): Readonly<Record<string, unknown>> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw invalid("The body must be an object");
  return { ...given };
}

function texts(given: unknown): Readonly<Record<string, string>> {
  const all = Object.entries(objectOf(given));
  return Object.fromEntries(
    all.map(([name, value]) => {
      if (typeof value !== "string") throw invalid(`${JSON.stringify(name)} must be text`);
      return [name, value] as const;
    }),
  );
}
