import { randomUUID } from "node:crypto";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { FrameWriter } from "../../packages/grpc/src/server/framing.ts";
import { serviceV03, serviceV1 } from "../../packages/grpc/src/services.ts";

/** Sends one message in the wire format of each binding, without this project's client, and reads the response. */

/** The bindings. `GRPC-Web` is gRPC-Web over HTTP/1.1. */
export const bindings = ["JSONRPC", "HTTP+JSON", "GRPC", "GRPC-Web"] as const;
export type Binding = (typeof bindings)[number];

export const versions = ["1.0", "0.3"] as const;
export type Version = (typeof versions)[number];

/** The content of a request in addition to its message. */
export interface Sent {
  /** Headers, or a function that creates them for the request's URL, as proofs require. */
  readonly headers?: Headers | ((url: string) => Promise<Headers>);
  readonly query?: Headers;
  /** The client's certificate, in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Members of the message, such as `metadata`. */
  readonly message?: Readonly<Record<string, unknown>>;
}

type Headers = Readonly<Record<string, string>>;

/** The text of the response, or a rejection with its challenge. */
export type Told =
  | { readonly text: string }
  | { readonly refused: "Unauthenticated" | "PermissionDenied"; readonly challenge: string | undefined }
  | { readonly failed: string };

/** Sends a message to the agent at the server's root. */
export async function send(server: string, binding: Binding, version: Version, sent: Sent = {}): Promise<Told> {
  const { path, type, body } = written(binding, version, sent.message ?? {});
  const url = server + path;
  const own = typeof sent.headers === "function" ? await sent.headers(url) : (sent.headers ?? {});
  const headers = { "content-type": type, "a2a-version": version, ...own };
  if (binding === "GRPC") return overGrpc(server, { ":path": path, te: "trailers", ...headers }, body, sent.tls);
  const query = new URLSearchParams(sent.query).toString();
  const answer = await ask("POST", query === "" ? url : `${url}?${query}`, headers, body, sent.tls);
  return binding === "GRPC-Web" ? ofTrailers(trailersIn(answer.body), answer.body) : ofHttp(answer);
}

interface Written {
  readonly path: string;
  readonly type: string;
  readonly body: Uint8Array;
}

function written(binding: Binding, version: Version, more: Readonly<Record<string, unknown>>): Written {
  const messageId = randomUUID();
  const part = { text: "who" };
  const v1 = { message: { messageId, role: "ROLE_USER", parts: [part], ...more } };
  if (binding === "JSONRPC") {
    const v03 = { message: { kind: "message", messageId, role: "user", parts: [{ kind: "text", ...part }], ...more } };
    const [method, params] = version === "1.0" ? ["SendMessage", v1] : ["message/send", v03];
    return { path: "/", type: "application/json", body: json({ jsonrpc: "2.0", id: 1, method, params }) };
  }
  const v03 = { message: { messageId, role: "ROLE_USER", content: [part], ...more } };
  if (binding === "HTTP+JSON") {
    const path = version === "1.0" ? "/message:send" : "/v1/message:send";
    return { path, type: "application/json", body: json(version === "1.0" ? v1 : v03) };
  }
  const method = (version === "1.0" ? serviceV1() : serviceV03()).operations.get("SendMessage");
  if (method === undefined) throw new Error("The service has no SendMessage");
  const value = version === "1.0" ? v1 : v03;
  const type = binding === "GRPC" ? "application/grpc" : "application/grpc-web+proto";
  return { path: method.path, type, body: new FrameWriter().write(method.input, [value]) };
}

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

interface HttpAnswer {
  readonly status: number;
  readonly challenge: string | undefined;
  readonly body: Buffer;
}

/** Reads a JSON document, such as a card, in a protocol version. */
export async function read(url: string, version: Version): Promise<unknown> {
  const { body } = await ask("GET", url, { "a2a-version": version });
  return JSON.parse(body.toString());
}

function ask(method: string, url: string, headers: Headers, body?: Uint8Array, tls?: Sent["tls"]): Promise<HttpAnswer> {
  const request = url.startsWith("https:") ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, headers, rejectUnauthorized: false, ...tls, agent: false }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => {
        const { statusCode = 0, headers: got } = answer;
        resolve({ status: statusCode, challenge: got["www-authenticate"], body: Buffer.concat(pieces) });
      });
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

function ofHttp({ status, challenge, body }: HttpAnswer): Told {
  const text = body.toString();
  if (status === 401) return { refused: "Unauthenticated", challenge };
  if (status === 403) return { refused: "PermissionDenied", challenge };
  return status === 200 ? ofText(text) : { failed: `${status} ${text}` };
}

/** Parses the agent's response, a sentence that every binding transmits unchanged. */
function ofText(text: string): Told {
  const said = /You are [^".]*/.exec(text)?.[0];
  return said === undefined ? { failed: text } : { text: said };
}

function overGrpc(server: string, headers: Headers, body: Uint8Array, tls: Sent["tls"]): Promise<Told> {
  const session = connectHttp2(server, { rejectUnauthorized: false, ...tls });
  return new Promise<Told>((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ...headers });
    const pieces: Buffer[] = [];
    let trailers: IncomingHttpHeaders = {};
    stream.on("response", (got) => (trailers = got));
    stream.on("trailers", (got: IncomingHttpHeaders) => (trailers = got));
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("error", reject);
    stream.on("end", () => {
      const plain = Object.entries(trailers).map(([name, value]) => [name, String(value)]);
      resolve(ofTrailers(Object.fromEntries(plain) as Headers, Buffer.concat(pieces)));
    });
    stream.end(body);
  }).finally(() => session.close());
}

/** The trailers in a gRPC-Web body: the last frame, whose flag has its highest bit set. */
function trailersIn(body: Buffer): Headers {
  let at = 0;
  while (at < body.length && ((body[at] ?? 0) & 0x80) === 0) at += 5 + body.readUInt32BE(at + 1);
  const lines = body
    .subarray(at + 5)
    .toString()
    .trim()
    .split("\r\n");
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
}

function ofTrailers(trailers: Headers, body: Buffer): Told {
  const challenge = trailers["www-authenticate"];
  switch (trailers["grpc-status"]) {
    case "0":
      return ofText(body.toString().replaceAll(/[^\x20-\x7e]/g, '"'));
    case "7":
      return { refused: "PermissionDenied", challenge };
    case "16":
      return { refused: "Unauthenticated", challenge };
    default:
      return { failed: JSON.stringify(trailers) };
  }
}
