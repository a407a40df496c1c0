import { Agent as HttpAgent, type AgentOptions, type ClientRequest } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { ResolvedAddress } from "@parley/a2a/internal/net/port";

/** Most connections that wait for another request. */
const maxIdle = 256;
/** Most of them to one origin at the same addresses. */
const maxIdleOfOne = 16;

/** What a request says to the agent of its connection. */
interface Pinned {
  /** See `connectionKey`. */
  readonly connectionKey?: string;
}

/**
 * What must be the same for a connection to be used again: the origin, and the set of addresses that were checked. The TLS
 * options are those of the dialer, which has connections of its own.
 */
export function connectionKey(url: URL, addresses: readonly ResolvedAddress[]): string {
  return [url.origin, ...addresses.map(({ address }) => address).sort()].join(" ");
}

/**
 * Connections of a dialer that are kept open for another request. One that nobody uses ends soon, a second before the server
 * ends it where the server says when. None of them keeps the process alive.
 */
export class KeptConnections {
  readonly #agents: Readonly<Record<string, HttpAgent>> | undefined;
  readonly #idle = new Set<Socket>();
  /** One function for all connections. */
  readonly #forget: (this: Socket) => void;

  /** @param wait - How long a connection waits for another request, in milliseconds. 0: none is kept. */
  constructor(wait: number) {
    const idle = this.#idle;
    this.#forget = function (this: Socket): void {
      idle.delete(this);
    };
    if (wait <= 0) return;
    const options: AgentOptions = { keepAlive: true, timeout: wait, maxFreeSockets: maxIdleOfOne };
    this.#agents = { "http:": this.#own(new HttpAgent(options)), "https:": this.#own(new HttpsAgent(options)) };
  }

  /** The agent for requests of a protocol. `false`: each request has a connection of its own. */
  agent(protocol: string): HttpAgent | false {
    return this.#agents?.[protocol] ?? false;
  }

  #own<T extends HttpAgent>(agent: T): T {
    return Object.assign(agent, {
      getName: (options: Pinned = {}) => options.connectionKey ?? "",
      keepSocketAlive: (socket: Socket) => this.#keep(agent, socket),
      reuseSocket: (socket: Socket, request: ClientRequest) => {
        this.#idle.delete(socket);
        socket.removeListener("close", this.#forget);
        HttpAgent.prototype.reuseSocket.call(agent, socket, request);
      },
    });
  }

  /** Whether the connection waits for another request. If not, Node closes it. */
  #keep(agent: HttpAgent, socket: Socket): boolean {
    if (this.#idle.size >= maxIdle) return false;
    // Node's declarations lack the result.
    const kept = HttpAgent.prototype.keepSocketAlive.call(agent, socket) as unknown as boolean;
    if (kept) this.#idle.add(socket.on("close", this.#forget));
    return kept;
  }
}
