import type { Sink, UniversalRequest, UniversalResponse, PeerCertificate, RequestFacts } from "@parley/a2a/protocol";
import type { Writable } from "node:stream";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

export type Headers = UniversalResponse["headers"];

/** The body of an answer that is there as a whole. */
export type WholeBody = Exclude<UniversalResponse["body"], (...args: never) => unknown>;

/** The head of an answer. */
export type Head = Pick<UniversalResponse, "status" | "headers" | "trailers">;

/** A request and the way back to who sent it, in one object: an answer needs no other. */
export interface Exchange extends UniversalRequest {
  /** Finds the user that a framework knows, for `facts`. */
  user?: (() => unknown) | undefined;
  /** Sends a whole answer. `last`: the connection ends with it, where that can be said. */
  send(head: Head, body: WholeBody, last: boolean): void;
  /** Begins a streamed answer: its head, and where its body goes. */
  open(head: Head): Sink;
  /** Sends the head of a streamed answer, if it waits for the first bytes of the body. */
  flush(): void;
  /** Ends a streamed answer. */
  end(): void;
  /** Whether an answer has begun, so that there can be no other one. */
  readonly begun: boolean;
  /** Whether a part of the answer waits for the peer to take it. */
  readonly pending: boolean;
  /** Breaks an answer off in such a way that nobody takes it for whole. */
  breakOff(): void;
  /** Breaks the answer off when the peer takes nothing for `timeout` milliseconds while something waits to go out. */
  closeWhenStalled(timeout: number): void;
}

/** Answers that have no body, whatever they say about one (RFC 9110 §6.4.1). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** Proxies may send the whole URL as the target (RFC 9112 §3.2.2), and `OPTIONS *` has no path. */
export function originForm(url: string): string {
  if (url.startsWith("/")) return url;
  if (!URL.canParse(url)) return "/";
  const { pathname, search } = new URL(url);
  return pathname.startsWith("/") ? pathname + search : "/";
}

/**
 * A streamed answer written to the socket as it comes. Memory is bounded by back-pressure: Node takes little beyond its
 * high-water mark, and a writer that heeds `ready()` waits.
 */
export class WritableSink implements Sink {
  closed = false;
  readonly #writable: Writable;
  /** Whom to tell that the peer is gone, and who waits for room: seldom more than one, mostly nobody. */
  #leaving: (() => void)[] | undefined;
  #waiting: (() => void)[] | undefined;

  constructor(writable: Writable) {
    this.#writable = writable;
  }

  write(chunk: string | Uint8Array): boolean {
    return !this.closed && this.#writable.write(chunk);
  }

  ready(): Promise<void> {
    if (this.closed || !this.#writable.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => {
      if (this.#waiting === undefined) this.#writable.once("drain", () => this.#wake());
      (this.#waiting ??= []).push(resolve);
    });
  }

  onClose(run: () => void): void {
    if (this.closed) run();
    else (this.#leaving ??= []).push(run);
  }

  /** To be called when the peer is gone, or when nothing that is written has a use. */
  close(): void {
    this.closed = true;
    this.#wake();
    const leaving = this.#leaving ?? [];
    this.#leaving = undefined;
    for (const run of leaving) run();
  }

  #wake(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const resolve of waiting) resolve();
  }
}

/** What a connection of Node tells of the client. Each fact is looked up when it is asked for. */
export class ConnectionFacts implements RequestFacts {
  readonly #socket: Socket | undefined;
  readonly #user: (() => unknown) | undefined;

  /** `user`: the user that a framework has found. */
  constructor(socket: Socket | undefined, user: (() => unknown) | undefined) {
    this.#socket = socket;
    this.#user = user;
  }

  get remoteAddress(): string | undefined {
    return this.#socket?.remoteAddress;
  }

  get certificate(): PeerCertificate | undefined {
    return this.#socket === undefined ? undefined : certificateOf(this.#socket);
  }

  get user(): unknown {
    return this.#user?.();
  }
}

function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!isTls(socket)) return undefined;
  // Node gives an empty object where there is none, and null once the connection is closed.
  const shown = socket.getPeerCertificate() as Partial<ReturnType<TLSSocket["getPeerCertificate"]>> | null;
  if (!shown?.raw || !shown.fingerprint256) return undefined;
  return {
    authorized: socket.authorized,
    der: new Uint8Array(shown.raw),
    fingerprint: shown.fingerprint256.replaceAll(":", "").toLowerCase(),
    subject: { ...(shown.subject as PeerCertificate["subject"]) },
    names: namesIn(shown.subjectaltname),
  };
}

function isTls(socket: Socket): socket is TLSSocket {
  // Read, since the socket of an HTTP/2 session stands behind a proxy that does not answer `in`.
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** Node writes them as `DNS:a, URI:"b, c"`: a name with a comma or a quote in it stands in quotes, as JSON text. */
function namesIn(list = ""): readonly string[] {
  return [...list.matchAll(/(?:, )?([^:,]+:)("(?:[^"\\]|\\.)*"|[^,]*)/gy)].map(([, kind = "", name = ""]) =>
    name.startsWith('"') ? kind + (JSON.parse(name) as string) : kind + name,
  );
}
