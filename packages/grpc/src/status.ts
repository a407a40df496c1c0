import type { A2AError } from "@parley/a2a";
import { reasonOf, wireStatuses } from "@parley/a2a/model";
import type { WireError } from "@parley/a2a/transport";
import { grpcWire, type Codec } from "@parley/a2a/wires";
import { fromBase64, toBase64 } from "./protobuf/base64.ts";
import { decode } from "./protobuf/decode.ts";
import { encode } from "./protobuf/encode.ts";
import type { JsonObject, MessageType } from "./protobuf/types.ts";
import { errorSchema } from "./services.ts";

/** How a call of gRPC ended, by number; and the HTTP status that says the same. */
const statuses = [
  ["OK", 200],
  ["CANCELLED", 499],
  ["UNKNOWN", 500],
  ["INVALID_ARGUMENT", 400],
  ["DEADLINE_EXCEEDED", 504],
  ["NOT_FOUND", 404],
  ["ALREADY_EXISTS", 409],
  ["PERMISSION_DENIED", 403],
  ["RESOURCE_EXHAUSTED", 429],
  ["FAILED_PRECONDITION", 400],
  ["ABORTED", 409],
  ["OUT_OF_RANGE", 400],
  ["UNIMPLEMENTED", 501],
  ["INTERNAL", 500],
  ["UNAVAILABLE", 503],
  ["DATA_LOSS", 500],
  ["UNAUTHENTICATED", 401],
] as const;

export type StatusName = (typeof statuses)[number][0];

const numbers: ReadonlyMap<string, number> = new Map(statuses.map(([name], code) => [name, code]));

export function statusCode(name: StatusName): number {
  return numbers.get(name) as number;
}

/** The end of a call, as trailers say it. */
export interface Status {
  readonly code: number;
  readonly message: string;
  /** `grpc-status-details-bin`: a `google.rpc.Status`, base64 without padding. */
  readonly details?: string;
}

/** Trailers travel as headers, which peers bound at 8 KiB and more: what is larger than this is left out. */
const largestDetails = 4096;
const longestMessage = 1024;

/** Translates errors between the trailers of gRPC and the codec of a version, which has words for them as REST has. */
export class Statuses {
  readonly #type: MessageType = errorSchema().message("google.rpc.Status");

  /** An error of ours as a status (A2A 1.0 §10.6). */
  of(error: WireError, codec: Codec): Status {
    const wire = grpcWire(codec);
    const name = wire.statuses?.[error.code] ?? wireStatuses[error.code];
    const code = numbers.get(name) ?? statusCode("UNKNOWN");
    const body = JSON.parse(wire.encodeError(error)) as { error?: JsonObject; type?: string };
    // Peers that know an error by a name in the body of REST find it before the text here.
    const text = body.type === undefined ? error.message : `${body.type}: ${error.message}`;
    const message = text.slice(0, longestMessage);
    const details = listOf((body.error ?? (body as JsonObject))["details"]).filter(isKnown);
    // What REST says by an HTTP status of its own has none here.
    if (!details.some(isErrorInfo) && meaning(code, "", [], codec).code !== error.code) {
      details.push({
        "@type": errorInfo,
        reason: reasonOf(error.code),
        domain: "parley",
      });
    }
    if (details.length === 0) return { code, message };
    let bytes = encode(this.#type, { code, message, details });
    if (bytes.length > largestDetails) {
      const small = details.filter((detail) => encode(this.#type, { details: [detail] }).length < largestDetails / 4);
      bytes = encode(this.#type, { code, message, details: small });
    }
    return { code, message, details: toBase64(bytes).replace(/={1,2}$/, "") };
  }

  /** A peer's status as the error that it means in the version of `codec`. */
  toError({ code, message, details }: Status, codec: Codec): A2AError {
    return meaning(code, message, details === undefined ? [] : this.#detailsOf(details), codec);
  }

  /** Details that cannot be read are none: the code and the message still say what happened. */
  #detailsOf(text: string): readonly unknown[] {
    try {
      return listOf(decode(this.#type, fromBase64(text))["details"]);
    } catch {
      return [];
    }
  }
}

function meaning(code: number, message: string, details: readonly unknown[], codec: Codec): A2AError {
  const [status, http] = statuses[code] ?? statuses[2];
  return grpcWire(codec).decodeError(http, { error: { code: http, status, message, details } });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

const typeUrl = "type.googleapis.com/google.rpc.";
const errorInfo = `${typeUrl}ErrorInfo`;
const sendable: ReadonlySet<string> = new Set([errorInfo, `${typeUrl}BadRequest`, `${typeUrl}RetryInfo`]);

/** Details of other types, which a peer may have sent us, cannot be written without knowing their fields. */
function isKnown(detail: unknown): detail is JsonObject {
  return typeof detail === "object" && detail !== null && sendable.has((detail as JsonObject)["@type"] as string);
}

function isErrorInfo(detail: JsonObject): boolean {
  return detail["@type"] === errorInfo;
}
