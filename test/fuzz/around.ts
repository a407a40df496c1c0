import { headers, routes } from "./bindings.ts";
import type { Request } from "./client.ts";

/** Requests that are wrong outside of their fields. The server accepts none of them. */

/** A request for both bindings. */
export interface AskedTwice {
  readonly name: string;
  readonly jsonrpc: Request;
  readonly rest: Request;
}

/** A request that exists for one binding only. */
export interface AskedOnce {
  readonly name: string;
  readonly request: Request;
  readonly read: "jsonrpc" | "rest";
}

/** Versions that the server does not support. */
export const versions: readonly string[] = [
  "9.9",
  "0.1",
  "1",
  "1.",
  ".1",
  "1.2",
  "2.0",
  "01.0",
  "-1.0",
  "1.0.x",
  "abc",
  "1.0, 0.3",
  "1e0",
];

const message = '{"message":{"messageId":"around","role":"ROLE_USER","parts":[{"text":"hello"}]}}';
const call = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${message}}`;
const jsonrpc: Request = { method: "POST", path: "/", headers, body: call };
const rest: Request = { method: "POST", path: "/message:send", headers, body: message };

function withHeaders(request: Request, more: Readonly<Record<string, string>>): Request {
  return { ...request, headers: { ...request.headers, ...more } };
}

function bytes(text: string, ...more: readonly number[]): Uint8Array {
  return Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from(more), Buffer.from(text.slice(-1))]);
}

export function* askedTwice(bodyBytes: number): Generator<AskedTwice> {
  const both = (name: string, change: (request: Request) => Request): AskedTwice => ({
    name,
    jsonrpc: change(jsonrpc),
    rest: change(rest),
  });
  const types = [
    "text/plain",
    "text/html; charset=utf-8",
    "application/xml",
    "application/jsonx",
    "application/json-seq",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "json",
    "/",
    ";",
  ];
  for (const type of types) {
    yield both(`content-type ${type}`, (request) => withHeaders(request, { "content-type": type }));
  }
  for (const version of versions) {
    yield both(`version ${version}`, (request) => withHeaders(request, { "a2a-version": version }));
    yield both(`version ${version} in the query`, ({ path, ...request }) => ({
      ...request,
      path: `${path}?A2A-Version=${encodeURIComponent(version)}`,
      headers: { "content-type": "application/json" },
    }));
  }
  yield both("a body of NUL", (request) => ({ ...request, body: "\0" }));
  yield both("no UTF-8", ({ body, ...request }) => ({ ...request, body: bytes(String(body), 0xff, 0xfe) }));
  yield both("half a character", ({ body, ...request }) => ({ ...request, body: bytes(String(body), 0xe2, 0x82) }));
  yield both("UTF-16", ({ body, ...request }) => ({ ...request, body: Buffer.from(String(body), "utf16le") }));
  yield both("a body of one byte too many", ({ body, ...request }) => ({
    ...request,
    body: String(body) + " ".repeat(bodyBytes + 1 - String(body).length),
  }));
  yield both("a body much too large", (request) => ({ ...request, body: `"${"x".repeat(20 * bodyBytes)}"` }));
  yield both("a body much too large, of no known length", ({ headers: known, ...request }) => ({
    ...request,
    headers: { ...known, "transfer-encoding": "chunked" },
    body: `"${"x".repeat(20 * bodyBytes)}"`,
  }));
  for (const [name, text] of Object.entries({ "an open array": "[", "an open object": '{"a":', "an open text": '"' })) {
    yield both(`${name}, twenty thousand times`, (request) => ({ ...request, body: text.repeat(10_000) }));
  }
}

export function* askedOnce(bodyBytes: number): Generator<AskedOnce> {
  const envelopes = [
    "",
    "  ",
    "null",
    "5",
    '"text"',
    "{}",
    "[]",
    "[[]]",
    `[${call}]`,
    `[${call},${call}]`,
    call.replace('"jsonrpc":"2.0",', ""),
    ...['"1.0"', "2", "2.0", "null", "[]"].map((version) => call.replace('"2.0"', version)),
    ...["1.5", "1e400", "{}", "[]", "true"].map((id) => call.replace('"id":1', `"id":${id}`)),
    call.replace('"method":"SendMessage",', ""),
    ...["null", "5", "{}", '""', '"sendMessage"', '"SENDMESSAGE"', '"message/send"', '"tasks/get"', '"__proto__"'].map(
      (method) => call.replace('"SendMessage"', method),
    ),
    ...['"rpc.discover"', '"toString"', '"constructor"', '"SendMessage\\u0000"'].map((method) =>
      call.replace('"SendMessage"', method),
    ),
    ...["[]", "[1]", '"text"', "5", "false"].map((params) => call.replace(message, params)),
  ];
  for (const body of envelopes) {
    yield { name: `JSON-RPC ${body.slice(0, 80)}`, request: { ...jsonrpc, body }, read: "jsonrpc" };
  }
  for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
    yield { name: `JSON-RPC by ${method}`, request: { ...jsonrpc, method }, read: "jsonrpc" };
    for (const { path, methods } of routes.values()) {
      if ((methods as readonly string[]).includes(method)) continue;
      const others = [...routes.values()].filter((route) => route.path === path);
      if (others.some((route) => (route.methods as readonly string[]).includes(method))) continue;
      const here = path.replaceAll(/\{\w+\}/g, "some-id");
      yield { name: `${method} ${here}`, request: { ...rest, method, path: here }, read: "rest" };
    }
  }
  const paths = [
    "/nope",
    "/message",
    "/message:",
    "/message:sendx",
    "/Message:send",
    "/message:send/",
    "/message%3Asend/x",
    "/a/b/message:send",
    "/a/b/c/d/e/f",
    "/tasks/some-id:resume",
    "/tasks/some-id/nope",
    "/tasks/some-id/pushNotificationConfigs/a/b",
    "/tasks/%",
    "/tasks/%zz",
    "/tasks/%ff%fe",
    "/%/message:send",
    "/%c3%28/tasks",
    "//",
    "///",
    "/./x",
    "/..%2f..%2fetc%2fpasswd",
    "/v1/message:nope",
    "/.well-known/nope",
    `/${"x".repeat(8000)}`,
    `/${"x/".repeat(4000)}`,
    "/tasks?pageSize=0",
    "/tasks?pageSize=1&pageSize=2",
    "/tasks?pageSize=%zz",
    "/tasks?pageSize",
    "/tasks?historyLength=0x1",
    "/tasks?status=",
    "/tasks?pageToken=%00",
    "/tasks?statusTimestampAfter=now",
    "/tasks?includeArtifacts=TRUE",
  ];
  for (const path of paths) {
    yield { name: `GET ${path.slice(0, 80)}`, request: { method: "GET", path, headers }, read: "rest" };
    if (!path.includes("?")) yield { name: `POST ${path.slice(0, 80)}`, request: { ...rest, path }, read: "rest" };
  }
  for (const at of ["-1", "abc", "1.5", "9".repeat(30), "\u00ff", " "]) {
    const path = "/tasks/some-id:subscribe";
    yield {
      name: `Last-Event-ID ${at}`,
      request: withHeaders({ ...rest, path, body: "" }, { "last-event-id": at }),
      read: "rest",
    };
  }
  for (const body of ["", " ", "null", "5", '"text"', "[]", "true", `"${"x".repeat(bodyBytes - 2)}"`]) {
    yield { name: `REST ${body.slice(0, 20)}`, request: { ...rest, body }, read: "rest" };
  }
}
