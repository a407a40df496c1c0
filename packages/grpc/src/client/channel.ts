import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";

export interface ChannelOptions {
  /** What `node:tls` takes for a connection: certificates to trust, and those of one's own. */
  readonly tls?: SecureClientSessionOptions;
  /**
   * While a call is open and its server silent, the server is asked this often whether it is there, in milliseconds;
   * `false`: never. Default a little more than 5 minutes: many servers refuse clients that ask more often. A connection
   * without calls is let go of after the same time, and keeps no process alive.
   */
  readonly keepAlive?: number | false;
  /** How long it may take to answer that, in milliseconds. Default 20 s. */
  readonly keepAliveTimeout?: number;
}

/** What HTTP/2 on this side takes. */
const sessionOptions = {
  settings: { enablePush: false, initialWindowSize: 1 << 20 },
  // In MiB. What waits to go out counts, and Node's own bound is smaller than the messages that servers take.
  maxSessionMemory: 256,
};

/** Of all streams together, in bytes. */
const connectionWindow = 4 << 20;

/** A stream and what is known of its connection. */
export interface Opened {
  readonly stream: ClientHttp2Stream;
  readonly link: Link;
}

/** A connection. */
export interface Link {
  readonly session: ClientHttp2Session;
  /** Who waits for the peer to show that it speaks HTTP/2; `undefined` once it has. */
  waiting: Set<() => void> | undefined;
  /** The last stream that the server takes, once it has said so (GOAWAY). */
  lastStream: number;
  open: number;
}

/** The one connection that is kept to an address, made when it is needed and again when it went. */
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

  /** Closes the connection when its calls have ended. */
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
    // Streams tell their calls; a session that nobody listens to would end the process.
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

  /** Lets a connection go that was silent for a while: an idle one at once, another when its server answers no more. */
  #check({ session, open }: Link, leave: () => void): void {
    if (open === 0) {
      leave();
      session.close();
    } else if (this.#options.keepAlive !== false) {
      const giveUp = (): void => session.destroy(new Error("The server does not answer pings any more"));
      const late = setTimeout(giveUp, this.#options.keepAliveTimeout ?? 20_000);
      session.ping(() => {
        clearTimeout(late);
        // The answer to a ping does not count as life.
        session.setTimeout(this.#period);
      });
    }
  }
}

/** Servers of other libraries end connections that are asked after more often than every five minutes. */
const usualPeriod = 310_000;
