import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A `node:http2` session, which is closed when the test ends. */
export class Http2Client implements Disposable {
  readonly session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
    session.on("error", () => {});
  }

  /** Connects a session. `options`: over TLS, with a trusted certificate. */
  static async to(origin: string, options: SecureClientSessionOptions = {}): Promise<Http2Client> {
    // The client's own memory limit also counts data that the client has not sent yet, so the limit is raised.
    const client = new Http2Client(connect(origin, { maxSessionMemory: 1000, ...options }));
    await new Promise<void>((resolve, reject) => {
      client.session.once("connect", () => resolve()).once("error", reject);
    });
    return client;
  }

  /** Opens a stream. With `body`, the request is complete. Without `body`, the test writes the body. */
  begin(path: string, headers: OutgoingHttpHeaders = {}, body?: string): ClientHttp2Stream {
    const stream = this.session.request({ ":path": path, ...headers }, { endStream: false });
    stream.on("error", () => {});
    if (body !== undefined) stream.end(body);
    return stream;
  }

  async get(path: string, headers: OutgoingHttpHeaders = {}): Promise<Http2Answer> {
    return answerOf(this.session.request({ ":path": path, ...headers }));
  }

  async post(path: string, body: string, headers: OutgoingHttpHeaders = {}): Promise<Http2Answer> {
    const head = { ":method": "POST", "content-type": "application/json", ...headers };
    return answerOf(this.begin(path, head, body));
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

/** Returns the whole response of a stream. Rejects if the stream is aborted. */
export function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  return new Promise((resolve, reject) => {
    let headers: IncomingHttpHeaders | undefined;
    let body = "";
    let ended = false;
    stream.setEncoding("utf8");
    stream.on("response", (head) => (headers = head));
    stream.on("data", (chunk: string) => (body += chunk));
    stream.on("end", () => (ended = true));
    stream.on("error", reject);
    stream.on("close", () => {
      if (headers === undefined || !ended || stream.rstCode !== 0) {
        reject(new Error(`The stream broke off with code ${stream.rstCode} after ${body.length} characters`));
      } else {
        resolve({ status: Number(headers[":status"]), headers, body });
      }
    });
  });
}

/** Waits until the received text of a stream satisfies `done`, and leaves the stream open. */
export function textUntil(stream: ClientHttp2Stream, done: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    stream.setEncoding("utf8");
    const look = (chunk: string): void => {
      text += chunk;
      if (!done(text)) return;
      stream.off("data", look);
      resolve(text);
    };
    stream.on("data", look);
    stream.on("close", () => reject(new Error(`The stream ended with:\n${text}`)));
  });
}

/** The start of every HTTP/2 connection: preface and empty settings (RFC 9113 §3.4). */
export const preface: Buffer = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
  frame(4, 0, 0),
]);

/** Returns the bytes of a frame (RFC 9113 §4.1). */
export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Returns a HEADERS frame for a GET request. With `ends`, the frame also ends the request (RFC 7541 §6.1, §6.2.2). */
export function getFrame(stream: number, path: string, ends = true): Buffer {
  const literal = (name: number, value: string): Buffer =>
    Buffer.concat([Buffer.of(name, value.length), Buffer.from(value, "latin1")]);
  const block = Buffer.concat([Buffer.of(0x82, 0x86), literal(0x04, path), literal(0x01, "a")]);
  return frame(1, ends ? 0x05 : 0x04, stream, block);
}
