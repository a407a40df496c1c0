import type { SecurityScheme } from "@parley/a2a/internal/model/index";
import type { RouteContext } from "@parley/server/internal/handler";
import type { OperatorsEntry, SignIn } from "./api.ts";
import { bytesOf } from "./webhooks.ts";

/* The operators' API, for a console whose user may operate the server. */

/** The location of the operators' API. */
export type ConsoleOperators = OwnOperators | RelayedOperators;

/** An API on the server that serves the console. The browser calls it with the operator's credentials. */
interface OwnOperators {
  /** Its path below the URL of the server, such as `/ops`. */
  readonly path: string;
  /** How operators sign in. Absent: anyone who connects directly from this machine is an operator. */
  readonly authenticator?: { readonly securitySchemes: Readonly<Record<string, SecurityScheme>> };
}

/** An API on another server. The console calls it with its own credentials. */
interface RelayedOperators {
  /** Its URL. */
  readonly url: string;
  /** Sends a request to it. */
  ask(request: OperatorsRequest): Promise<Response>;
}

/** A request to the operators' API. */
export interface OperatorsRequest {
  /** Its method. */
  readonly method: "GET" | "POST";
  /** Path below the URL of the API, with the query, such as `/v1/nodes`. */
  readonly path: string;
  /** JSON text. */
  readonly body?: string;
}

/** Maximum bytes of a body and of an answer to relay. A page of a log has 4 MiB at most, unless one of its records is larger. */
const [maxBody, maxAnswer] = [64 << 10, 16 << 20];

/** Answers requests below `/operators`. `undefined`: the request has another path. */
export async function answerOperators(
  operators: ConsoleOperators | undefined,
  request: Request,
  { below, path: mounted }: Pick<RouteContext, "below"> & { readonly path: string },
): Promise<Response | undefined> {
  if (request.method === "GET" && below === "/operators") {
    return Response.json({ operators: operators === undefined ? null : entryOf(operators, request, mounted + below) });
  }
  const [, path] = /^\/operators(\/v1\/[a-z/-]{1,64})$/.exec(below) ?? [];
  const { method } = request;
  if (path === undefined || operators === undefined || "path" in operators) return undefined;
  if (method !== "GET" && method !== "POST") return undefined;
  const sent = method === "POST" ? await bytesOf(request, maxBody) : new Uint8Array();
  if (sent === undefined) return failure(413, "The body is too large");
  try {
    const { search } = new URL(request.url);
    const body = method === "POST" && { body: new TextDecoder().decode(sent) };
    const answer = await operators.ask({ method, path: path + search, ...body });
    const bytes = await bytesOf(answer, maxAnswer);
    if (bytes === undefined)
      return failure(502, `The operators' API at ${operators.url} answered with more than 16 MiB`);
    // The page reads only JSON, so any answer is relayed as JSON.
    return new Response(new Uint8Array(bytes), {
      status: answer.status,
      headers: { "content-type": "application/json", "x-content-type-options": "nosniff" },
    });
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return failure(502, `The operators' API at ${operators.url} does not answer: ${reason}`);
  }
}

function failure(status: number, message: string): Response {
  return Response.json({ error: { code: status, message } }, { status });
}

/** Describes the operators' API for the page. `own`: path of the request below the URL of the server. */
function entryOf(operators: ConsoleOperators, request: Request, own: string): OperatorsEntry {
  if (!("path" in operators)) {
    return { path: "./api/operators", url: operators.url, bearer: false, basic: false, apiKeys: [] };
  }
  const { origin, pathname } = new URL(request.url);
  const { securitySchemes = {} } = operators.authenticator ?? {};
  const path = pathname.slice(0, -own.length) + operators.path;
  return { path, url: origin + path, ...formsOf(Object.values(securitySchemes)) };
}

/** The ways to sign in that the page can offer for the schemes. */
export function formsOf(schemes: readonly SecurityScheme[]): Pick<SignIn, "bearer" | "basic" | "apiKeys"> {
  const http = schemes.map(({ httpAuthSecurityScheme: scheme }) => scheme?.scheme.toLowerCase());
  const isToken = schemes.some(
    ({ oauth2SecurityScheme, openIdConnectSecurityScheme }) =>
      oauth2SecurityScheme !== undefined || openIdConnectSecurityScheme !== undefined,
  );
  const keys = schemes.flatMap(({ apiKeySecurityScheme: key }) => (key?.location === "header" ? [key.name] : []));
  return { bearer: isToken || http.includes("bearer"), basic: http.includes("basic"), apiKeys: [...new Set(keys)] };
}
