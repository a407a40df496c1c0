import { WebStandardStreamableHTTPServerTransport, isLegacyRequest, type Server } from "@modelcontextprotocol/server";
import type { Principal } from "@parley/a2a/protocol";
import { callerKey } from "./handles.ts";
import { Shares } from "./shares.ts";

/*
 * HTTP sessions for 2025-11-25. Questions within a call, notifications and cancellation require a session, because they are separate requests. A
 * session holds no essential state, so requests with an unknown session are answered without a session.
 */

interface Session {
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** Ids of the requests in progress. */
  readonly requests: ReadonlySet<unknown>;
}

const maxSessions = 100;

/** Maximum size of a request, including files as base64. */
export const maxRequestBytes: number = 16 << 20;

export class Sessions {
  readonly #make: (caller: Principal) => Server;
  readonly #onerror: (error: Error) => void;
  /** Least recently used first. */
  readonly #open = new Map<string, Session>();
  /** Callers whose sessions are being created. These sessions count towards the limit, so that parallel requests cannot exceed the limit. */
  readonly #beginning: string[] = [];

  constructor(make: (caller: Principal) => Server, onerror: (error: Error) => void) {
    this.#make = make;
    this.#onerror = onerror;
  }

  /** Answers a request that belongs to a session or starts a session. `undefined` if the request must be answered without a session. */
  async answer(request: Request, caller: Principal): Promise<Response | undefined> {
    const owner = callerKey(caller);
    const id = request.headers.get("mcp-session-id");
    if (id === null) {
      if (!(await isInitialize(request))) return undefined;
      return this.#begin(request, owner, caller);
    }
    const session = this.#open.get(id);
    if (session === undefined) return undefined;
    if (session.caller !== owner) return new Response(null, { status: 404 });
    this.#open.delete(id);
    this.#open.set(id, session);
    return session.transport.handleRequest(request);
  }

  /** Answers the first request of a session. `undefined` if there is no room. */
  async #begin(request: Request, owner: string, caller: Principal): Promise<Response | undefined> {
    this.#beginning.push(owner);
    try {
      if (!(await this.#makeRoom(owner))) return undefined;
      const transport = await this.#connect(owner, caller);
      return await transport.handleRequest(request);
    } finally {
      this.#beginning.splice(this.#beginning.indexOf(owner), 1);
    }
  }

  /** Closes the oldest session of the caller with the most sessions; a busy session only for a caller with fewer. Returns whether there is room. */
  async #makeRoom(owner: string): Promise<boolean> {
    const open = [...this.#open.values()];
    if (open.length + this.#beginning.length <= maxSessions) return true;
    const shares = new Shares([...open.map(({ caller }) => caller), ...this.#beginning]);
    const held = open.filter(({ caller }) => shares.isLargest(caller));
    const idle = held.find(({ requests }) => requests.size === 0);
    const closed = idle ?? (shares.isLargest(owner) ? undefined : held[0]);
    await closed?.transport.close();
    return closed !== undefined;
  }

  async #connect(owner: string, caller: Principal): Promise<WebStandardStreamableHTTPServerTransport> {
    const requests = new Set<unknown>();
    const transport = new WebStandardStreamableHTTPServerTransport({
      maxRequestBodySize: maxRequestBytes,
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.#open.set(id, { caller: owner, transport, requests }),
    });
    await this.#make(caller).connect(transport);
    follow(transport, requests);
    const { onclose } = transport;
    transport.onclose = () => {
      if (transport.sessionId !== undefined) this.#open.delete(transport.sessionId);
      onclose?.();
    };
    transport.onerror = this.#onerror;
    return transport;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ transport }) => transport.close()));
  }
}

/** Tracks the requests in progress, and cancels a request if its client disconnects. */
function follow(transport: WebStandardStreamableHTTPServerTransport, requests: Set<unknown>): void {
  const { onmessage } = transport;
  const deliver: typeof onmessage = (message, extra) => {
    if ("method" in message && message.method === "notifications/cancelled")
      requests.delete(message.params?.["requestId"]);
    onmessage?.(message, extra);
  };
  transport.onmessage = (message, extra) => {
    if ("id" in message && "method" in message) {
      const params = { requestId: message.id };
      const cancel = (): void => deliver({ jsonrpc: "2.0", method: "notifications/cancelled", params });
      requests.add(message.id);
      extra?.request?.signal.addEventListener("abort", cancel, { once: true });
    }
    deliver(message, extra);
  };
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    if (!("method" in message)) requests.delete(message.id);
    await send(message, options);
  };
}

/** Checks the body, because the first request has no version header yet. */
async function isInitialize(request: Request): Promise<boolean> {
  if (request.method !== "POST" || request.headers.has("mcp-protocol-version")) return false;
  if (!(await isLegacyRequest(request, undefined, { maxRequestBodySize: maxRequestBytes }))) return false;
  const body: unknown = await request
    .clone()
    .json()
    // The SDK answers invalid JSON.
    .catch(() => undefined);
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}
