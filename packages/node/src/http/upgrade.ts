import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { withoutQuery, type Logger } from "@parley/a2a/internal/base/index";
import type { UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type {
  HttpBinding,
  HttpEndpoint,
  ServerBinding,
  ServerHost,
} from "@parley/a2a/internal/transport/server/binding";
import type { Handler } from "@parley/server/internal/handler";
import { Http1Exchange } from "./http1.ts";
import type { Proxies } from "./proxies.ts";
import type { PlainRule } from "./tls.ts";

/** A binding that takes connections over from HTTP/1.1 (RFC 9110 §7.8), as WebSocket does. */
export interface UpgradeBinding extends ServerBinding {
  /** Name of its protocol in the header `Upgrade`, in lower case: `websocket`. */
  readonly upgradesTo: string;
  /** Answers HTTP requests, and takes connections over. */
  readonly http: Omit<HttpBinding, "open"> & { open(host: ServerHost): UpgradeEndpoint };
}

/** Clients request the upgrade with a GET at a path that the binding claims. `answer` gets all other requests to that path. */
export interface UpgradeEndpoint extends HttpEndpoint {
  /** Takes the connection over, or rejects and closes it. The caller is not authenticated yet. */
  upgrade(connection: UpgradedConnection): void;
  /** Closes the connections: the server has stopped, and all calls have ended. */
  close?(): void;
}

/** A connection whose client has requested an upgrade. */
export interface UpgradedConnection {
  /** The request for the upgrade. It has been admitted. */
  readonly request: UniversalRequest;
  /** The same request as an object of Node. */
  readonly incoming: IncomingMessage;
  /** The socket of the connection. */
  readonly socket: Socket;
  /** Bytes of the new protocol that the client has sent already. */
  readonly head: Buffer;
}

/** Passes connections to the endpoints that take them over. */
export class Upgrades {
  readonly #handler: Pick<Handler, "find" | "host">;
  readonly #protocols: ReadonlySet<string>;
  readonly #logger: Logger;
  readonly #trust: Trust;
  readonly #used = new Set<UpgradeEndpoint>();

  constructor(handler: Pick<Handler, "find" | "host">, bindings: readonly object[], logger: Logger, trust: Trust = {}) {
    this.#trust = trust;
    this.#handler = handler;
    this.#protocols = new Set(bindings.filter(isUpgrade).map(({ upgradesTo }) => upgradesTo));
    this.#logger = logger;
  }

  /** Whether any binding takes connections over. */
  get possible(): boolean {
    return this.#protocols.size > 0;
  }

  /** Whether an endpoint takes the connection over. `false`: the request is answered over HTTP. */
  claims(incoming: IncomingMessage): boolean {
    return this.#claimOf(incoming) !== undefined;
  }

  /** Passes a connection to the endpoint that takes it over. */
  take(incoming: IncomingMessage, socket: Socket, head: Buffer): void {
    const claim = this.#claimOf(incoming);
    if (claim === undefined) return;
    const { endpoint, request } = claim;
    this.#used.add(endpoint);
    try {
      endpoint.upgrade({ request, incoming, socket, head });
    } catch (cause) {
      this.#logger.error("Failed to upgrade a connection", { url: withoutQuery(request.url), cause });
      socket.destroy();
    }
  }

  /** Closes the endpoints: the server has stopped. */
  close(): void {
    for (const endpoint of this.#used) endpoint.close?.();
  }

  #claimOf(incoming: IncomingMessage): Claim | undefined {
    const { method, headers } = incoming;
    if (method !== "GET" || !this.#protocols.has(headers.upgrade?.toLowerCase() ?? "")) return undefined;
    const request = new Http1Exchange(incoming, new ServerResponse(incoming));
    request.proxies = this.#trust.proxies;
    if (this.#trust.plain?.(request) === false) return undefined;
    const endpoint = this.#handler.find(request.url)?.endpoint;
    if (endpoint === undefined || !takesOver(endpoint)) return undefined;
    try {
      this.#handler.host.admit?.(request);
      return { endpoint, request };
    } catch {
      // The request then gets an error over HTTP.
      return undefined;
    }
  }
}

/** The conditions for taking a connection over. */
interface Trust {
  readonly proxies?: Proxies | undefined;
  /** The rule for connections without TLS. Absent: any may be taken over. */
  readonly plain?: PlainRule | undefined;
}

interface Claim {
  readonly endpoint: UpgradeEndpoint;
  readonly request: UniversalRequest;
}

function isUpgrade(binding: object): binding is UpgradeBinding {
  return "upgradesTo" in binding;
}

function takesOver(endpoint: HttpEndpoint): endpoint is UpgradeEndpoint {
  return "upgrade" in endpoint;
}

/**
 * The bytes of a request without its upgrade headers. A server may ignore an upgrade request and answer it over
 * HTTP (RFC 9110 §7.8).
 */
export function withoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage, head: Buffer): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (!/^(?:upgrade|http2-settings)$/i.test(name)) lines.push(`${name}: ${withoutOption(name, value)}`);
  }
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]);
}

/** Removes the upgrade headers from the list in `Connection`. */
function withoutOption(name: string, value: string): string {
  if (name.toLowerCase() !== "connection") return value;
  const options = value.split(",").map((option) => option.trim());
  return options.filter((option) => !/^(?:upgrade|http2-settings)$/i.test(option)).join(", ");
}
