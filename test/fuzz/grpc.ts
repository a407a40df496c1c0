import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import type { A2AError } from "@parley/a2a";
import type { OperationName } from "@parley/a2a/protocol";
import { codecV1 } from "../../packages/a2a/src/wire/v1/index.ts";
import { frameOf } from "../../packages/grpc/src/frames.ts";
import { decodeMessage } from "../../packages/grpc/src/metadata.ts";
import { decode } from "../../packages/grpc/src/protobuf/decode.ts";
import { encode } from "../../packages/grpc/src/protobuf/encode.ts";
import { serviceV1, type A2AMethod } from "../../packages/grpc/src/services.ts";
import { Statuses } from "../../packages/grpc/src/status.ts";

/** What a call came to: nothing was wrong, or this was. */
export interface Ending {
  readonly error: A2AError | undefined;
  /** Of gRPC. */
  readonly status: number;
}

const service = serviceV1();
const statuses = new Statuses();

/** Calls of gRPC over one connection, on the port of everything else; nothing is checked and nothing put right. */
export class GrpcClient {
  sent = 0;
  readonly #session: ClientHttp2Session;

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#session.on("error", () => {});
  }

  /** Rejects where a call breaks off, or has not come to its end within 20 s. */
  call(operation: OperationName, frames: Uint8Array): Promise<Ending> {
    this.sent += 1;
    return new Promise((resolve, reject) => {
      const stream = this.#session.request({
        ":method": "POST",
        ":path": methodOf(operation).path,
        "content-type": "application/grpc",
        "a2a-version": "1.0",
        // So that a frame may say that its message is compressed.
        "grpc-encoding": "gzip",
      });
      let end: IncomingHttpHeaders = {};
      const late = setTimeout(() => stream.destroy(new Error("no answer")), 20_000);
      stream.on("response", (headers) => {
        if (headers["grpc-status"] !== undefined) end = headers;
        else if (headers[":status"] !== 200) stream.destroy(new Error(`HTTP ${headers[":status"]}`));
      });
      stream.on("trailers", (trailers) => (end = trailers));
      stream.on("error", reject);
      stream.on("close", () => {
        clearTimeout(late);
        if (end["grpc-status"] === undefined) reject(new Error("the call broke off"));
        else resolve(endingOf(end));
      });
      stream.resume();
      stream.end(frames);
    });
  }

  close(): void {
    this.#session.destroy();
  }
}

function endingOf(end: IncomingHttpHeaders): Ending {
  const code = Number(end["grpc-status"]);
  const message = decodeMessage(String(end["grpc-message"] ?? ""));
  const details = end["grpc-status-details-bin"];
  if (code === 0) return { error: undefined, status: code };
  const status = { code, message, ...(typeof details === "string" && { details }) };
  return { error: statuses.toError(status, codecV1), status: code };
}

function methodOf(operation: OperationName): A2AMethod {
  return service.operations.get(operation) as A2AMethod;
}

/**
 * A request, given as JSON text, as gRPC sends it, and as JSON text again with what protobuf made of it: it knows no
 * unknown members, and does not tell an empty text from none. `undefined` where it cannot say it at all.
 */
export function overProtobuf(operation: OperationName, text: string): { frame: Uint8Array; text: string } | undefined {
  const { input } = methodOf(operation);
  try {
    const bytes = encode(input, JSON.parse(text));
    return { frame: frameOf(bytes), text: JSON.stringify(decode(input, bytes)) };
  } catch {
    return undefined;
  }
}
