import {
  createServer as createHttp1,
  type Server as Http1Server,
  type ServerResponse,
  type IncomingMessage,
  type ServerOptions as Http1Options,
} from "node:http";
import {
  createServer as createHttp2,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { ServerOptions as TlsOptions } from "node:https";
import { createServer as createNet, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTls, Server as TlsServer } from "node:tls";
import type { Logger } from "@parley/a2a/internal/base/index";
import { bind, stopListening } from "../listen.ts";
import { Connections } from "./connections.ts";
import { requestTimeout } from "./http2.ts";
import { withoutUpgrade } from "./upgrade.ts";

/** The functions that answer the requests of a port. */
export interface PortHandlers {
  /** `asksFirst`: the client sends its body only after `100 Continue` (RFC 9110 §10.1.1). */
  http1(incoming: IncomingMessage, response: ServerResponse, asksFirst: boolean): void;
  http2(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Takes connections over from HTTP/1.1. Absent: upgrades are not possible. */
  readonly upgrades?: {
    claims(incoming: IncomingMessage): boolean;
    take(incoming: IncomingMessage, socket: Socket, head: Buffer): void;
  };
}

export interface PortOptions {
  /** With a certificate the port speaks only TLS, and the client chooses the version of HTTP in the handshake (ALPN). */
  readonly tls?: TlsOptions;
  /**
   * How long an idle connection is kept, in milliseconds. Default 65 s. Load balancers usually keep theirs for a minute, and must
   * close first.
   */
  readonly keepAliveTimeout?: number;
  /**
   * Longest wait in milliseconds for the headers of a request, for the first bytes of a connection, and for the answer of an idle
   * client to a ping. Default 30 s.
   */
  readonly headersTimeout?: number;
  /** Longest time to receive a whole request, in milliseconds. Default 5 min. */
  readonly requestTimeout?: number;
  /** Time between two checks for slow requests, in milliseconds. Default 30 s. */
  readonly checkInterval?: number;
}

/** Limits of one HTTP/2 connection. Node also limits headers, and floods of pings, settings, resets and invalid frames. */
const http2Options = {
  settings: {
    // Task streams stay open for hours, and a proxy multiplexes all its clients' streams over one connection.
    maxConcurrentStreams: 1_000,
    // Four times the default of the protocol, so that a message with a file does not wait for a round trip every 64 KiB.
    initialWindowSize: 256 * 1024,
  },
  // In MiB, including answers that wait for their readers. At the limit, the server rejects further requests.
  maxSessionMemory: 128,
};

/** The flow-control window of a whole connection, in bytes. */
const connectionWindow = 1024 * 1024;

/** Decides which upgrade requests become upgrades. Node 22.21 and newer call it. The types of Node 20 lack it. */
interface UpgradeOptions {
  shouldUpgradeCallback(incoming: IncomingMessage): boolean;
}

/**
 * A port for HTTP/1.1 and HTTP/2, with or without TLS. It accepts the connections and passes each to one of two servers, which
 * do not listen themselves. Without TLS the first bytes determine the version of HTTP, with TLS the handshake.
 */
export class Port {
  readonly connections: Connections = new Connections();
  /** Longest time to receive a whole request, in milliseconds. For HTTP/1.1 Node enforces it. */
  readonly requestTimeout: number;
  readonly #front: NetServer;
  readonly #http1: Http1Server;
  readonly #http2: Http2Server = createHttp2(http2Options);
  readonly #keepAliveTimeout: number;
  readonly #headersTimeout: number;
  #upgrades: PortHandlers["upgrades"];

  constructor(options: PortOptions = {}) {
    const { tls, keepAliveTimeout = 65_000, headersTimeout = 30_000, checkInterval = 30_000 } = options;
    this.requestTimeout = options.requestTimeout ?? requestTimeout;
    this.#keepAliveTimeout = keepAliveTimeout;
    this.#headersTimeout = headersTimeout;
    const http1Options: Http1Options & UpgradeOptions = {
      ...tls,
      keepAliveTimeout,
      headersTimeout: Math.min(headersTimeout, this.requestTimeout),
      // This limit must not apply to answers.
      requestTimeout: this.requestTimeout,
      connectionsCheckingInterval: checkInterval,
      shouldUpgradeCallback: (incoming) => this.#upgrades?.claims(incoming) === true,
    };
    this.#http1 = createHttp1(http1Options);
    this.#front =
      tls === undefined
        ? // Half-open, as in `node:http`: a client that has closed its side may still read the answer.
          createNet({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
        : this.#secure(tls);
  }

  /** Listens. Resolves with the port number. Rejects with the reason if the port cannot be used. */
  bind(address: string, port: number): Promise<number> {
    return bind(this.#front, address, port);
  }

  /** Takes a connection that another process has accepted. */
  take(socket: Socket): void {
    // The server sets the same for connections that it accepts.
    socket.allowHalfOpen = !(this.#front instanceof TlsServer);
    socket.setNoDelay(true);
    this.#front.emit("connection", socket);
  }

  /** Sets the request handlers. Call it in the turn of the event loop in which `bind` resolves, before a request arrives. */
  answer({ http1, http2, upgrades }: PortHandlers, logger: Logger): void {
    this.#http1.on("request", (incoming, response) => http1(incoming, response, false));
    this.#http1.on("checkContinue", (incoming, response) => http1(incoming, response, true));
    this.#http2.on("stream", http2);
    this.#upgrades = upgrades;
    // Without this listener, Node answers upgrade requests as ordinary requests.
    if (upgrades !== undefined) {
      this.#http1.on("upgrade", (incoming, socket: Socket, head: Buffer) => {
        this.connections.release(socket);
        if (upgrades.claims(incoming)) return upgrades.take(incoming, socket, head);
        // Without `shouldUpgradeCallback`, Node upgrades every such request. If no binding takes it, it is answered over HTTP.
        this.connections.open(socket);
        if (!socket.destroyed) this.#toHttp1(socket, withoutUpgrade(incoming, head));
      });
    }
    // Starts the checks for slow headers. Node itself starts them only when a server listens.
    this.#http1.emit("listening");
    this.#front.on("error", (cause) => logger.error("Failed to accept a connection", { cause }));
  }

  /** Uses another certificate for connections from now on. Only for a port with TLS. */
  renew(tls: TlsOptions): void {
    if (this.#front instanceof TlsServer) this.#front.setSecureContext(tls);
  }

  /** Accepts waiting connections, then stops listening, so that new ones fail and another process can listen. */
  leave(): Promise<void> {
    return stopListening(this.#front, () => this.connections.acceptedCount);
  }

  /** Accepts no new connections, and closes each open one after its pending answers. */
  drain(): void {
    this.#front.close();
    this.connections.drain();
  }

  /** Waits up to `timeout` milliseconds for answers that are being sent, then closes everything. */
  async end(timeout: number): Promise<void> {
    await this.connections.end(timeout);
    // Stops the checks for slow headers. The callback ignores the error that the server does not listen.
    this.#http1.close(() => {});
  }

  #secure(tls: TlsOptions): NetServer {
    const options = {
      ALPNProtocols: ["h2", "http/1.1"],
      noDelay: true,
      handshakeTimeout: this.#headersTimeout,
      ...tls,
    };
    const front = createTls(options, (socket) => {
      this.connections.open(socket);
      // The port is closing.
      if (socket.destroyed) return;
      if (socket.alpnProtocol === "h2") this.#toHttp2(socket);
      else this.#http1.emit("connection", socket);
    });
    front.on("connection", (socket: Socket) => this.connections.accept(socket));
    return front.on("tlsClientError", (_cause, socket) => socket.destroy());
  }

  #accept(socket: Socket): void {
    this.connections.accept(socket);
    this.connections.open(socket);
    if (socket.destroyed) return;
    peek(socket, this.#headersTimeout, (isHttp2) => {
      if (isHttp2) this.#toHttp2(socket);
      else this.#toHttp1(socket);
    });
  }

  /** `first`: bytes that were read already. */
  #toHttp1(socket: Socket, first?: Buffer): void {
    if (first !== undefined) socket.pause().unshift(first);
    this.#http1.emit("connection", socket);
    socket.on("resume", stayPaused).resume();
  }

  #toHttp2(socket: Socket): void {
    // Otherwise a session would stay open after its client has closed its side.
    socket.allowHalfOpen = false;
    const begin = (session: ServerHttp2Session): void => {
      this.connections.upgrade(socket, session);
      session.setLocalWindowSize(connectionWindow);
      this.#watch(session, socket);
    };
    // The session is emitted during the call, or never if the connection is lost.
    this.#http2.once("session", begin).emit("connection", socket);
    this.#http2.off("session", begin);
  }

  /** Closes a session without streams when it is idle, and a session with streams when its client does not answer a ping. */
  #watch(session: ServerHttp2Session, socket: Socket): void {
    let streams = 0;
    session.on("stream", (stream) => {
      streams++;
      stream.on("close", () => streams--);
    });
    const giveUp = (): void => void socket.destroy();
    session.setTimeout(this.#keepAliveTimeout);
    session.on("timeout", () => {
      if (streams === 0) {
        session.close();
        socket.setTimeout(this.#headersTimeout, giveUp);
      } else {
        const late = setTimeout(giveUp, this.#headersTimeout);
        session.ping(() => {
          clearTimeout(late);
          // Node does not count the answer to a ping as activity.
          session.setTimeout(this.#keepAliveTimeout);
        });
      }
    });
  }
}

/**
 * Bytes that were put back are parsed before the socket emits `resume`. If a body was already paused, Node's server would take
 * that event as permission to continue, and would read the whole body into memory.
 */
function stayPaused(this: Socket): void {
  if (this.isPaused()) this.emit("pause");
}

/** The first bytes of every HTTP/2 connection (RFC 9113 §3.4). Invalid as an HTTP/1.1 request. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Reads the first bytes of a connection without TLS until they distinguish HTTP/2 from HTTP/1.1, and puts them back. Most clients
 * send enough in one packet, some send single bytes. Closes a connection that has not sent enough after `timeout` milliseconds,
 * because no server watches it yet.
 */
function peek(socket: Socket, timeout: number, decided: (isHttp2: boolean) => void): void {
  let seen: Buffer | undefined;
  const timer = setTimeout(giveUp, timeout);
  socket.on("data", look).on("end", giveUp).on("error", giveUp).on("close", settle);

  function look(chunk: Buffer): void {
    seen = seen === undefined ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, preface.length);
    const isHttp2 = preface.compare(seen, 0, length, 0, length) === 0;
    if (isHttp2 && length < preface.length) return;
    settle();
    // Paused first: in a flowing socket the bytes that are put back would wait for the next ones.
    socket.pause().unshift(seen);
    decided(isHttp2);
  }

  function settle(): void {
    clearTimeout(timer);
    socket.off("data", look).off("end", giveUp).off("error", giveUp).off("close", settle);
  }

  function giveUp(): void {
    settle();
    socket.destroy();
  }
}
