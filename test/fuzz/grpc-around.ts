import { gzipSync } from "node:zlib";
import { encode } from "../../packages/grpc/src/protobuf/encode.ts";
import { frameOf } from "../../packages/grpc/src/frames.ts";
import { versions } from "./around.ts";
import { services } from "./calls.ts";
import type { RawCall } from "./grpc.ts";

/** A gRPC call that is wrong outside of its message. The server accepts none of them. */
export interface AskedByCall {
  readonly name: string;
  readonly request: RawCall;
  /** The allowed gRPC statuses. */
  readonly status: readonly number[];
  /** The HTTP status, if the call is rejected before gRPC handles it. */
  readonly http?: number;
}

const invalidArgument = 3;
const deadlineExceeded = 4;
const notFound = 5;
const resourceExhausted = 8;
const failedPrecondition = 9;
const unimplemented = 12;
const internal = 13;

const path = "/lf.a2a.v1.A2AService/GetTask";
const { input } = services["1.0"].methods.get(path) as { input: Parameters<typeof encode>[0] };
const message = encode(input, { id: "around" });
const frame = frameOf(message);

function bytes(...pieces: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Buffer.concat(pieces.map((piece) => Uint8Array.from(piece)));
}

export function* askedByCall(bodyBytes: number): Generator<AskedByCall> {
  const framed = (
    name: string,
    body: Uint8Array,
    status: number,
    headers: Record<string, string> = {},
  ): AskedByCall => ({
    name,
    request: { path, frames: body, headers },
    status: [status],
  });
  const head = (length: number, flags = 0): readonly number[] => {
    const [a = 0, b = 0, c = 0, d = 0] = new Uint8Array(new Uint32Array([length]).buffer).reverse();
    return [flags, a, b, c, d];
  };
  const packed = gzipSync(message);
  const gzip = { "grpc-encoding": "gzip" };

  yield framed("no frame", new Uint8Array(), invalidArgument);
  for (let size = 1; size < frame.length; size += 1) {
    yield framed(`${size} bytes of a frame`, frame.subarray(0, size), invalidArgument);
  }
  yield framed("a frame that says less than it has", bytes(head(message.length - 1), message), invalidArgument);
  yield framed("a frame that says more than it has", bytes(head(message.length + 1), message), invalidArgument);
  yield framed("two messages", bytes(frame, frame), invalidArgument);
  yield framed("a message and a half", bytes(frame, frame.subarray(0, 7)), invalidArgument);
  yield framed("two hundred messages", bytes(...Array.from({ length: 200 }, () => frame)), resourceExhausted);
  yield framed("a frame of one byte too many", bytes(head(bodyBytes + 1)), invalidArgument);
  yield framed("a frame of four gigabytes", bytes(head(0xffff_ffff)), invalidArgument);
  yield framed("a frame much too large", frameOf(new Uint8Array(20 * bodyBytes)), invalidArgument);
  // The flag marks the message as compressed, but no header names the compression.
  yield framed("packed, and nothing says how", frameOf(packed, 1), internal);
  yield framed("packed as identity", frameOf(packed, 1), internal, { "grpc-encoding": "identity" });
  for (const flags of [2, 3, 0x80, 0xff]) yield framed(`flags ${flags}`, frameOf(message, flags), invalidArgument);
  for (const encoding of ["deflate", "br", "snappy", "gzip, gzip", "nonsense"]) {
    yield framed(`packed by ${encoding}`, frameOf(packed, 1), unimplemented, { "grpc-encoding": encoding });
  }
  yield framed("no gzip", frameOf(message, 1), invalidArgument, gzip);
  yield framed("nothing, packed", frameOf(new Uint8Array(), 1), invalidArgument, gzip);
  yield framed("half a gzip", frameOf(packed.subarray(0, packed.length >> 1), 1), invalidArgument, gzip);
  yield framed("a gzip that swells", frameOf(gzipSync(new Uint8Array(100 * bodyBytes)), 1), invalidArgument, gzip);

  for (const type of [
    "application/grpc+json",
    "application/grpc+proto+x",
    "application/grpcx",
    "application/grpc-web+json",
  ]) {
    yield { name: type, request: { path, frames: frame, headers: { "content-type": type } }, status: [], http: 415 };
  }
  for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
    yield { name: method, request: { path, method, frames: new Uint8Array() }, status: [], http: 405 };
  }
  const paths = [
    "/",
    "//",
    "/lf.a2a.v1.A2AService",
    "/lf.a2a.v1.A2AService/",
    "/lf.a2a.v1.A2AService/GetTask/",
    "/lf.a2a.v1.A2AService/getTask",
    "/lf.a2a.v1.A2AService/Get%54ask",
    "/lf.a2a.v1.A2AService/GetTask?a=b",
    "/LF.a2a.v1.A2AService/GetTask",
    "/a2a.v1.A2AService/SubscribeToTask",
    "/lf.a2a.v1.A2AService/__proto__",
    "/__proto__/constructor",
    "/message:send",
    `/${"x".repeat(8_000)}`,
  ];
  for (const at of paths)
    yield { name: at.slice(0, 80), request: { path: at, frames: frame }, status: [unimplemented] };

  for (const timeout of ["", "1", "S", "-1S", "1.5S", "123456789S", "1x", "1s", "1S1S", "1e3S", "NaNm"]) {
    yield framed(`a deadline of ${JSON.stringify(timeout)}`, frame, invalidArgument, { "grpc-timeout": timeout });
  }
  for (const timeout of ["0n", "1n", "0S", "1u", "99999999H"]) {
    const request = { path, frames: frame, headers: { "grpc-timeout": timeout } };
    yield { name: `a deadline of ${timeout}`, request, status: [deadlineExceeded, notFound] };
  }
  for (const version of versions) {
    const request = { path, frames: frame, headers: { "a2a-version": version } };
    yield { name: `version ${version}`, request, status: [failedPrecondition] };
  }
  for (const extensions of [",,,", "a".repeat(4_000), "\u00ff", "x ".repeat(500)]) {
    const request = { path, frames: frame, headers: { "a2a-extensions": extensions, "x-junk-bin": "!!!" } };
    yield { name: `extensions ${extensions.slice(0, 20)}`, request, status: [notFound] };
  }
  for (const at of ["-1", "abc", "1.5", "9".repeat(30), " "]) {
    const subscribe = {
      path: "/lf.a2a.v1.A2AService/SubscribeToTask",
      frames: frame,
      headers: { "last-event-id": at },
    };
    yield { name: `Last-Event-ID ${at}`, request: subscribe, status: [notFound] };
  }
}

/** Callers that disconnect before the end of their request. */
export function* leaving(): Generator<RawCall> {
  for (const method of services["1.0"].methods.keys()) {
    for (let size = 0; size < 12; size += 1) {
      yield { path: method, frames: frame.subarray(0, size), leaves: true };
    }
  }
}
