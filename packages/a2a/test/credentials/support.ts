import type { IncomingMessage, ServerResponse } from "node:http";
import type { A2AError, AgentCard, SecurityScheme } from "../../src/model/index.ts";
import { bodyOf, cardOf, errorOf as thrownBy, jsonRpcAt, listen, taskOf } from "../client/support.ts";

/* Starts misbehaving third-party agents and authorization servers. */

/** An agent whose responses come from `answer`, or are the default ones. */
export interface StrangeAgent {
  readonly url: string;
  readonly card: AgentCard;
  /** The headers and paths of the agent's calls, except for requests for the card. */
  readonly calls: readonly { readonly headers: IncomingMessage["headers"]; readonly url: string }[];
}

export async function agentWith(
  securitySchemes: Readonly<Record<string, SecurityScheme>>,
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
  securityRequirements: AgentCard["securityRequirements"] & {} = [
    { schemes: Object.fromEntries(Object.keys(securitySchemes).map((name) => [name, { list: ["chat"] }])) },
  ],
  capabilities: AgentCard["capabilities"] = {},
): Promise<StrangeAgent> {
  const calls: { headers: IncomingMessage["headers"]; url: string }[] = [];
  const made: { card?: AgentCard } = {};
  const url = await listen((request, response) => {
    void (async () => {
      if (request.url === "/.well-known/agent-card.json") {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(made.card));
        return;
      }
      const body = await bodyOf(request);
      if (request.method === "POST") calls.push({ headers: request.headers, url: request.url ?? "" });
      if (answer(request, response)) return;
      const { id } = JSON.parse(body) as { id: number };
      const result = taskOf("TASK_STATE_WORKING");
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    })();
  });
  const card = cardOf([jsonRpcAt(url)], { securitySchemes, securityRequirements, capabilities });
  made.card = card;
  return { url, card, calls };
}

/** Rejects a call with a challenge. */
export function refuse(response: ServerResponse, challenge: string, status = 401): boolean {
  response.writeHead(status, { "www-authenticate": challenge }).end();
  return true;
}

/** Starts an authorization server whose responses the test defines. `asked`: the path and the form of each request. */
export async function authorizationServer(
  answer: (path: string, form: URLSearchParams, issuer: string) => unknown,
): Promise<{ readonly issuer: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const issuer = await listen((request, response) => {
    void (async () => {
      const form = new URLSearchParams(await bodyOf(request));
      asked.push(`${request.url} ${form.toString()}`.trim());
      const value = answer(request.url ?? "", form, issuer);
      if (value === undefined) return response.writeHead(404).end();
      if (typeof value === "function") return (value as (to: ServerResponse) => void)(response);
      const failed = typeof value === "object" && value !== null && "error" in value;
      response.writeHead(failed ? 400 : 200, { "content-type": "application/json" });
      return response.end(typeof value === "string" ? value : JSON.stringify(value));
    })();
  });
  return { issuer, asked };
}

/** Returns an OAuth 2.0 scheme with the client credentials flow and a token endpoint. */
export const clientFlow = (tokenUrl: string): SecurityScheme => ({
  oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl, scopes: { chat: "Talk" } } } },
});

/** Returns the error with which a promise rejects. */
export async function errorOf(work: Promise<unknown>): Promise<A2AError> {
  return (await thrownBy(work)) as A2AError;
}
