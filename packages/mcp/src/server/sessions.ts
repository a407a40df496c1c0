import { WebStandardStreamableHTTPServerTransport, isLegacyRequest, type Server } from "@modelcontextprotocol/server";
import type { Principal } from "@parley/a2a/protocol";
import { callerKey } from "./handles.ts";
import { Shares } from "./shares.ts";

/*
 * Sessions of 2025-11-25 over HTTP. Questions within a call, notices and cancellation need one: they are further requests. A session is a
 * convenience and no state: requests of a session that this process does not have are answered without it.
 */

interface Session {
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** Ids of the requests in progress. */
  readonly requests: ReadonlySet<unknown>;
}

const maxSessions = 100;

/** Maximum size of a request. Files come in it as base64. */
export const maxRequestBytes: number = 16 << 20;

export class Sessions {
  readonly #make: (caller: Principal) => Server;
  readonly #onerror: (error: Error) => void;
  /** The least recently used first. */
  readonly #open = new Map<string, Session>();
  /** Callers whose sessions begin now. They count, so that a crowd that begins at the same time keeps the limit. */
  readonly #beginning: string[] = [];

  constructor(make: (caller: Principal) => Server, onerror: (error: Error) => void) {
    this.#make = make;
    this.#onerror = onerror;
  }

  /** The answer to a request of a session, or to one that begins a session. `undefined`: answer it without. */
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

  /** The answer to the first request of a session. `undefined`: there is no room. */
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

  /** Closes the oldest session of the caller that has the most, a busy one only for a caller with fewer. Returns whether there is room. */
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

/** Notes the requests in progress, and cancels those whose client closes their connection: it no longer waits for them. */
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

/** A first request has no version yet. */
async function isInitialize(request: Request): Promise<boolean> {
  if (request.method !== "POST" || request.headers.has("mcp-protocol-version")) return false;
  if (!(await isLegacyRequest(request, undefined, { maxRequestBodySize: maxRequestBytes }))) return false;
  const body: unknown = await request
    .clone()
    .json()
    // The SDK answers it.
    .catch(() => undefined);
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}
