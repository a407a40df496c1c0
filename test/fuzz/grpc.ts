import { connect, constants, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import type { A2AError } from "@parley/server";
import { codecV1, type Codec, type OperationName } from "@parley/a2a/protocol";
import { frameOf } from "../../packages/grpc/src/frames.ts";
import { decodeMessage } from "../../packages/grpc/src/metadata.ts";
import { decode } from "../../packages/grpc/src/protobuf/decode.ts";
import { encode } from "../../packages/grpc/src/protobuf/encode.ts";
import type { MessageType } from "../../packages/grpc/src/protobuf/types.ts";
import { serviceV03, serviceV1, type A2AMethod } from "../../packages/grpc/src/services.ts";
import { Statuses } from "../../packages/grpc/src/status.ts";

/** The result of a call: no error, or this one. */
export interface Ending {
  readonly error: A2AError | undefined;
  /** The gRPC status. `undefined` if the call was rejected before gRPC handled it. */
  readonly status: number | undefined;
  /** The HTTP status. */
  readonly http: number;
}

/** A raw call, without checks or corrections. */
export interface RawCall {
  readonly path: string;
  readonly frames: Uint8Array;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Disconnects in the middle of the request. */
  readonly leaves?: boolean;
  /** The codec that decodes its errors. Default: the 1.0 codec. */
  readonly codec?: Codec;
}

const service = serviceV1();
const statuses = new Statuses();
/** By path: the message types that name the fields of an error. */
const inputs = new Map(
  [service, serviceV03()].flatMap(({ operations }) => [...operations.values()].map(({ path, input }) => [path, input])),
);

/** gRPC calls over one connection, on the port of the other bindings. */
export class GrpcClient {
  sent = 0;
  readonly #session: ClientHttp2Session;

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#session.on("error", () => {});
  }

  /** Rejects if a call has no complete response within 20 s. */
  async call(operation: OperationName, frames: Uint8Array): Promise<Ending> {
    // Allows frames whose flag marks them as compressed.
    const headers = { "a2a-version": "1.0", "grpc-encoding": "gzip" };
    const ending = await this.raw({ path: methodOf(operation).path, frames, headers });
    if (ending.status === undefined) throw new Error(`the call broke off: HTTP ${ending.http}`);
    return ending;
  }

  raw({ path, frames, method = "POST", headers, leaves = false, codec = codecV1 }: RawCall): Promise<Ending> {
    this.sent += 1;
    return new Promise((resolve, reject) => {
      const stream = this.#session.request(
        { ":method": method, ":path": path, "content-type": "application/grpc", ...headers },
        { endStream: false },
      );
      let end: IncomingHttpHeaders = {};
      const late = setTimeout(() => stream.destroy(new Error("no answer")), 20_000);
      stream.on("response", (head) => (end = head));
      stream.on("trailers", (trailers) => (end = { ...end, ...trailers }));
      stream.on("error", reject);
      stream.on("close", () => {
        clearTimeout(late);
        resolve(endingOf(end, codec, inputs.get(path)));
      });
      stream.resume();
      if (leaves) stream.write(frames, () => stream.close(constants.NGHTTP2_CANCEL));
      else stream.end(frames);
    });
  }

  close(): void {
    this.#session.destroy();
  }
}

function endingOf(
  end: IncomingHttpHeaders & { ":status"?: number },
  codec: Codec,
  input: MessageType | undefined,
): Ending {
  const http = end[":status"] ?? 0;
  if (end["grpc-status"] === undefined) return { error: undefined, status: undefined, http };
  const code = Number(end["grpc-status"]);
  const message = decodeMessage(String(end["grpc-message"] ?? ""));
  const details = end["grpc-status-details-bin"];
  if (code === 0) return { error: undefined, status: code, http };
  const status = { code, message, ...(typeof details === "string" && { details }) };
  return { error: statuses.toError(status, codec, input), status: code, http };
}

function methodOf(operation: OperationName): A2AMethod {
  return service.operations.get(operation) as A2AMethod;
}

/**
 * A JSON request as a gRPC frame, and as the JSON that its protobuf decodes to, without unknown members and without
 * empty texts. `undefined` if protobuf cannot express it.
 */
export function overProtobuf(operation: OperationName, text: string): { frame: Uint8Array; text: string } | undefined {
  const { input } = methodOf(operation);
  try {
    const bytes = encode(input, JSON.parse(text));
    return { frame: frameOf(bytes), text: saidBy(methodOf(operation), bytes) };
  } catch {
    return undefined;
  }
}

/** The bytes of a request as JSON text. Throws if decoding fails. */
export function saidBy({ input, operation }: A2AMethod, bytes: Uint8Array): string {
  const said = decode(input, bytes);
  // Some clients always send it. On gRPC, 0 equals an absent value.
  if (operation === "ListTasks" && said["pageSize"] === 0) delete said["pageSize"];
  return JSON.stringify(said);
}
