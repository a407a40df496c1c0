import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";

export interface ChannelOptions {
  /** Options of `node:tls` for a connection: certificates to trust, and a client certificate. */
  readonly tls?: SecureClientSessionOptions;
  /**
   * Milliseconds of silence after which the server of an open call gets a ping; `false` sends none. Default: a little more
   * than 5 minutes, since many servers refuse more frequent pings. A connection without calls is closed after the same
   * time, and does not keep the process running.
   */
  readonly keepAlive?: number | false;
  /** How long the answer to a ping may take, in milliseconds. Default: 20 s. */
  readonly keepAliveTimeout?: number;
}

/** Settings of HTTP/2. */
const sessionOptions = {
  settings: { enablePush: false, initialWindowSize: 1 << 20 },
  // In MiB. Unsent data counts too, and the default of Node is smaller than the messages that servers accept.
  maxSessionMemory: 256,
};

/** Flow-control window of a connection, in bytes. */
const connectionWindow = 4 << 20;

/** A stream and its connection. */
export interface Opened {
  readonly stream: ClientHttp2Stream;
  readonly link: Link;
}

/** A connection. */
export interface Link {
  readonly session: ClientHttp2Session;
  /** Called when the server has sent its settings, and so speaks HTTP/2; `undefined` after that. */
  waiting: Set<() => void> | undefined;
  /** The last stream that the server processes, after a GOAWAY. */
  lastStream: number;
  open: number;
}

/** Keeps one connection to an address. Connects on the first call, and again after a connection was lost. */
export class Channel {
  readonly #origin: string;
  readonly #options: ChannelOptions;
  #link: Link | undefined;

  constructor(origin: string, options: ChannelOptions) {
    this.#origin = origin;
    this.#options = options;
  }

  open(headers: OutgoingHttpHeaders): Opened {
    if (this.#link?.session.closed === true || this.#link?.session.destroyed === true) this.#link = undefined;
    const link = (this.#link ??= this.#connect());
    const { session } = link;
    const stream = session.request(headers, { endStream: false });
    if (link.open++ === 0) session.ref();
    stream.on("close", () => {
      if (--link.open === 0) session.unref();
    });
    return { stream, link };
  }

  /** Closes the connection once its calls have ended. */
  close(): void {
    this.#link?.session.close();
    this.#link = undefined;
  }

  #connect(): Link {
    const session = connect(this.#origin, { ...this.#options.tls, ...sessionOptions });
    const link: Link = { session, waiting: new Set(), lastStream: Infinity, open: 0 };
    const leave = (): void => {
      if (this.#link === link) this.#link = undefined;
    };
    session.on("connect", () => session.setLocalWindowSize(connectionWindow));
    session.once("remoteSettings", () => {
      const { waiting = [] } = link;
      link.waiting = undefined;
      for (const run of waiting) run();
    });
    session.on("goaway", (_code: number, lastStream: number) => {
      link.lastStream = Math.min(link.lastStream, lastStream);
      leave();
    });
    // Calls learn of the error by their streams. Without a listener it would end the process.
    session.on("error", leave);
    session.on("close", leave);
    session.on("timeout", () => this.#check(link, leave));
    session.setTimeout(this.#period);
    session.unref();
    return link;
  }

  get #period(): number {
    const { keepAlive = usualPeriod } = this.#options;
    return keepAlive === false ? usualPeriod : keepAlive;
  }

  /** After a time of silence: closes a connection without calls, and sends a ping on another one. */
  #check({ session, open }: Link, leave: () => void): void {
    if (open === 0) {
      leave();
      session.close();
    } else if (this.#options.keepAlive !== false) {
      const giveUp = (): void => session.destroy(new Error("The server does not answer pings any more"));
      const late = setTimeout(giveUp, this.#options.keepAliveTimeout ?? 20_000);
      session.ping(() => {
        clearTimeout(late);
        // The answer to a ping does not reset the timeout.
        session.setTimeout(this.#period);
      });
    }
  }
}

/** Servers of other libraries close connections with pings more often than every five minutes. */
const usualPeriod = 310_000;
