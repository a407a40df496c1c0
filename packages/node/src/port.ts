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
import { createServer as createNet, type AddressInfo, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTls } from "node:tls";
import type { Logger } from "@parley/a2a";
import { Connections } from "./connections.ts";
import { requestTimeout } from "./http2.ts";
import { withoutUpgrade } from "./upgrade.ts";

/** Who answers what comes in. */
export interface PortHandlers {
  /** `asksFirst`: the client waits to be told to send its body (RFC 9110 §10.1.1). */
  http1(incoming: IncomingMessage, response: ServerResponse, asksFirst: boolean): void;
  http2(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Who takes connections over from HTTP/1.1. Absent: nobody ever does. */
  readonly upgrades?: {
    claims(incoming: IncomingMessage): boolean;
    take(incoming: IncomingMessage, socket: Socket, head: Buffer): void;
  };
}

export interface PortOptions {
  /** With a certificate the port speaks TLS alone, and the client chooses the version of HTTP in its handshake (ALPN). */
  readonly tls?: TlsOptions;
  /**
   * How long an idle connection is kept, in milliseconds. Default 65 s: beyond the minute that load balancers commonly
   * keep theirs, so that it is never the server who closes first.
   */
  readonly keepAliveTimeout?: number;
  /** How long a request may take to show its headers, a connection its version of HTTP, and a quiet peer to answer a ping. Default 30 s. */
  readonly headersTimeout?: number;
  /** How often connections are looked at for slow headers, in milliseconds. Default 30 s. */
  readonly checkInterval?: number;
}

/** What one HTTP/2 connection may take. Node's own limits on headers and on floods of pings, settings, resets and bad frames come on top. */
const http2Options = {
  settings: {
    // Streams of tasks stay open for hours, and a proxy brings those of all its clients over one connection.
    maxConcurrentStreams: 1_000,
    // Four times the default of the protocol: a message with a file need not wait for a round trip every 64 KiB.
    initialWindowSize: 256 * 1024,
  },
  // In MiB. Answers that wait for their readers count, and while it is used up all further requests are refused.
  maxSessionMemory: 128,
};

/** The same for a connection as a whole, in bytes. */
const connectionWindow = 1024 * 1024;

/** What the types of Node 20 do not have: which requests for an upgrade become one. Node 22.21 and newer ask it. */
interface UpgradeOptions {
  shouldUpgradeCallback(incoming: IncomingMessage): boolean;
}

/**
 * A port for HTTP/1.1 and HTTP/2 at once, in clear text or over TLS. It accepts the connections, and hands each to one of
 * two servers that do not listen themselves: clear-text HTTP/2 is known by its first bytes, over TLS the handshake says.
 */
export class Port {
  readonly connections: Connections = new Connections();
  readonly #front: NetServer;
  readonly #http1: Http1Server;
  readonly #http2: Http2Server = createHttp2(http2Options);
  readonly #keepAliveTimeout: number;
  readonly #headersTimeout: number;
  #upgrades: PortHandlers["upgrades"];

  constructor({ tls, keepAliveTimeout = 65_000, headersTimeout = 30_000, checkInterval = 30_000 }: PortOptions = {}) {
    this.#keepAliveTimeout = keepAliveTimeout;
    this.#headersTimeout = headersTimeout;
    const http1Options: Http1Options & UpgradeOptions = {
      ...tls,
      keepAliveTimeout,
      headersTimeout,
      // For sending the whole request; an answer may take as long as it will.
      requestTimeout,
      connectionsCheckingInterval: checkInterval,
      shouldUpgradeCallback: (incoming) => this.#upgrades?.claims(incoming) === true,
    };
    this.#http1 = createHttp1(http1Options);
    this.#front =
      tls === undefined
        ? // As `node:http` has its own sockets: who has sent all that it will may still want the answer.
          createNet({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
        : this.#secure(tls);
  }

  /** Listens, and gives the port that was bound; rejects in plain words where that cannot be. */
  bind(address: string, port: number): Promise<number> {
    return bind(this.#front, address, port);
  }

  /** Says who answers: at once after `bind`, so that no request comes before there is somebody to answer it. */
  answer({ http1, http2, upgrades }: PortHandlers, logger: Logger): void {
    this.#http1.on("request", (incoming, response) => http1(incoming, response, false));
    this.#http1.on("checkContinue", (incoming, response) => http1(incoming, response, true));
    this.#http2.on("stream", http2);
    this.#upgrades = upgrades;
    // Without a listener Node answers as if it had not been asked for an upgrade.
    if (upgrades !== undefined) {
      this.#http1.on("upgrade", (incoming, socket: Socket, head: Buffer) => {
        this.connections.release(socket);
        if (upgrades.claims(incoming)) return upgrades.take(incoming, socket, head);
        // A Node that does not know `shouldUpgradeCallback` asks nobody before: what nobody takes goes back to be answered.
        this.connections.open(socket);
        if (!socket.destroyed) this.#toHttp1(socket, withoutUpgrade(incoming, head));
      });
    }
    // Has it look after slow headers; it would begin so when it listens.
    this.#http1.emit("listening");
    this.#front.on("error", (cause) => logger.error("A connection could not be accepted", { cause }));
  }

  /** Takes no new connections, and lets those that there are end with the answers that they are owed. */
  drain(): void {
    this.#front.close();
    this.connections.drain();
  }

  /** Waits up to `timeout` milliseconds for answers that are on their way out, then closes everything. */
  async end(timeout: number): Promise<void> {
    await this.connections.end(timeout);
    // Lets go of the timer that it checks headers with; that it does not listen is no news.
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
      // Too late, where the port closes already.
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

  /** `first` is read before all that is still to come. */
  #toHttp1(socket: Socket, first?: Buffer): void {
    if (first !== undefined) socket.pause().unshift(first);
    this.#http1.emit("connection", socket);
    socket.on("resume", stayPaused).resume();
  }

  #toHttp2(socket: Socket): void {
    // Node's sessions do not notice a peer that has closed its side, and go on for nobody.
    socket.allowHalfOpen = false;
    const begin = (session: ServerHttp2Session): void => {
      this.connections.upgrade(socket, session);
      session.setLocalWindowSize(connectionWindow);
      this.#watch(session, socket);
    };
    // Within the call, and not at all where the connection is lost meanwhile.
    this.#http2.once("session", begin).emit("connection", socket);
    this.#http2.off("session", begin);
  }

  /** Closes a session that nobody uses, and one whose client has streams open but answers no more. */
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
          // An answer to a ping does not count as life.
          session.setTimeout(this.#keepAliveTimeout);
        });
      }
    });
  }
}

/**
 * What was put back is parsed before the socket tells that it flows again. Where a body had enough by then, Node's server
 * took that news for leave to read on, and read all that came into memory.
 */
function stayPaused(this: Socket): void {
  if (this.isPaused()) this.emit("pause");
}

/** Listens, and says in plain words why it cannot. Gives the port that was bound. */
function bind(server: NetServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      reject(new Error(`Cannot listen on ${host}:${port}: ${reasons[cause.code ?? ""] ?? cause.message}`, { cause }));
    };
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there; choose another port, or 0 for any that is free",
  EACCES: "this user may not listen there; ports below 1024 often need more rights",
  EADDRNOTAVAIL: "this machine has no such address",
};

/** What every HTTP/2 connection begins with (RFC 9113 §3.4), made so that no HTTP/1.1 server takes it for a request. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Tells clear-text HTTP/2 from HTTP/1.1 by the first bytes of a connection, and hands it on with all of them still to be
 * read. Most clients send enough at once; some send their bytes one by one. One that leaves the question open for
 * `timeout` milliseconds is closed: no server has it yet that would do so.
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
    // While it flows, what is put back would wait for the bytes after it.
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
