import { connect, type Socket } from "node:net";

/**
 * A keep-alive HTTP/1.1 connection with one request at a time. It uses a bare socket, and parses only as much of a response as it needs to
 * find the end, so that it costs less than the measured server.
 */
export class Connection {
  readonly #socket: Socket;
  #pending: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;
  #read: Buffer = Buffer.alloc(0);

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.on("data", (data) => this.#take(data));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error("The server closed the connection")));
  }

  send(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#socket.write(request, "latin1");
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#pending?.reject(error);
    this.#pending = undefined;
  }

  #take(data: Buffer): void {
    const read = this.#read.length === 0 ? data : Buffer.concat([this.#read, data]);
    const answer = readAnswer(read);
    this.#read = answer === undefined ? read : Buffer.alloc(0);
    if (answer === undefined) return;
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.resolve(answer);
  }
}

export interface Answer {
  readonly ok: boolean;
  /** Includes the framing of chunked encoding, if the response uses it. */
  readonly body: Buffer;
}

const lastChunk = Buffer.from("0\r\n\r\n");

function readAnswer(read: Buffer): Answer | undefined {
  const end = read.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = read.toString("latin1", 0, end);
  const body = read.subarray(end + 4);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const whole =
    length === undefined ? body.subarray(-lastChunk.length).equals(lastChunk) : body.length >= Number(length);
  return whole ? { ok: head.startsWith("HTTP/1.1 200"), body } : undefined;
}

/** The place in a body where a new message id is inserted. */
export const idMark = "@MESSAGE-ID-HERE-IT-IS@";

/** Returns a function that creates unique ids with the length of the mark. */
export function messageIds(): () => string {
  const prefix = Math.random().toString(36).slice(2, 10).padEnd(8, "0");
  let last = 0;
  return () => `${prefix}-${String(++last).padStart(idMark.length - 9, "0")}`;
}

export interface Request {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** JSON in ASCII, which may contain `idMark`. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns a function that creates the bytes of the request, each time with a new id. */
export function rendered({ method, url, body = "", headers = {} }: Request): () => string {
  const { host, pathname, search } = new URL(url);
  const head = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    "a2a-version: 1.0",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(method === "POST" ? ["content-type: application/json", `content-length: ${body.length}`] : []),
  ].join("\r\n");
  const [before = "", after] = body.split(idMark);
  const start = `${head}\r\n\r\n${before}`;
  if (after === undefined) return () => start;
  const nextId = messageIds();
  return () => start + nextId() + after;
}
