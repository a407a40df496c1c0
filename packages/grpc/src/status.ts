import type { A2AError } from "@parley/a2a/model";
import { reasonOf, wireStatuses } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { WireError } from "@parley/a2a/internal/transport/server/response";
import { grpcWire, type Codec } from "@parley/a2a/internal/wire/codec";
import { errorDetails, status } from "./descriptors.ts";
import { readSchema } from "./protobuf/descriptor.ts";
import { fromBase64, toBase64 } from "./protobuf/text.ts";
import { decode } from "./protobuf/decode.ts";
import { encode } from "./protobuf/encode.ts";
import { type JsonObject, jsonPath, type MessageType, protoPath } from "./protobuf/types.ts";

/** The status codes of gRPC in numeric order, with the equivalent HTTP status. */
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

export function statusCode(name: StatusName): number {
  return codeOf(name);
}

function codeOf(name: string): number {
  const code = statuses.findIndex(([each]) => each === name);
  return code === -1 ? codeOf("UNKNOWN") : code;
}

/** An error of gRPC itself, without an A2A code. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: StatusName;
  /** Trailers other than the status. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(status: StatusName, message: string, metadata: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.metadata = metadata;
  }
}

/** The end of a call in its trailers. */
export interface Status {
  readonly code: number;
  readonly message: string;
  /** `grpc-status-details-bin`: a `google.rpc.Status`, base64 without padding. */
  readonly details?: string;
}

/**
 * Maximum size of details, in bytes. Trailers count as headers, which peers limit to 8 KiB or more. Drops larger details.
 */
const largestDetails = 4096;
const longestMessage = 1024;

/** Translates errors between gRPC trailers and the REST error bodies of a version. */
export class Statuses {
  readonly #type: MessageType = readSchema([status, errorDetails]).message("google.rpc.Status");

  /**
   * The status of an error (A2A 1.0 §10.6). `request`: the message that the error's fields belong to. Field violations
   * use the names of the .proto file, as in `google.rpc.BadRequest` and the SDKs.
   */
  of(error: WireError, codec: Codec, request?: MessageType): Status {
    const wire = grpcWire(codec);
    const name = error.sentAs?.grpc ?? wire.statuses?.[error.code] ?? wireStatuses[error.code];
    const code = codeOf(name);
    const encoded: unknown = JSON.parse(wire.encodeError(error));
    const body = isObject(encoded) ? encoded : {};
    // The REST body of 0.3 names the error; here its name precedes the text.
    const text = typeof body["type"] === "string" ? `${body["type"]}: ${error.message}` : error.message;
    const message = text.slice(0, longestMessage);
    const details = listOf((isObject(body["error"]) ? body["error"] : body)["details"])
      .filter(isKnown)
      .map((detail) => withPaths(detail, request, protoPath));
    // Several HTTP statuses share a gRPC code. If the code is ambiguous, add the name of the error.
    const reason = reasonOf(error.code);
    const named = details.some((detail) => detail["@type"] === errorInfo && detail["reason"] === reason);
    if (!named && meaning(code, "", [], codec).code !== error.code) {
      details.push({ "@type": errorInfo, reason, domain: "parley" });
    }
    if (details.length === 0) return { code, message };
    let bytes = encode(this.#type, { code, message, details });
    if (bytes.length > largestDetails) {
      const small = details.filter((detail) => encode(this.#type, { details: [detail] }).length < largestDetails / 4);
      bytes = encode(this.#type, { code, message, details: small });
    }
    return { code, message, details: toBase64(bytes).replace(/={1,2}$/, "") };
  }

  /** The error of a status in the version of `codec`. Its fields have JSON names, as over every binding. */
  toError({ code, message, details }: Status, codec: Codec, request?: MessageType): A2AError {
    const read = details === undefined ? [] : this.#detailsOf(details);
    const named = read.map((detail) => (isKnown(detail) ? withPaths(detail, request, jsonPath) : detail));
    return meaning(code, message, named, codec);
  }

  /** Unreadable details are ignored: code and message remain. */
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
  return Array.isArray(value) ? value : [];
}

const typeUrl = "type.googleapis.com/google.rpc.";
const errorInfo = `${typeUrl}ErrorInfo`;
const badRequest = `${typeUrl}BadRequest`;
const sendable: ReadonlySet<unknown> = new Set([errorInfo, badRequest, `${typeUrl}RetryInfo`]);

/** Details of other types may come from a peer. They cannot be encoded without their fields. */
function isKnown(detail: unknown): detail is JsonObject {
  return isObject(detail) && sendable.has(detail["@type"]);
}

/** Renames the fields of a BadRequest. */
function withPaths(
  detail: JsonObject,
  request: MessageType | undefined,
  pathOf: (path: string, type: MessageType) => string,
): JsonObject {
  if (request === undefined || detail["@type"] !== badRequest) return detail;
  const violations = listOf(detail["fieldViolations"]).filter(isObject);
  return {
    ...detail,
    fieldViolations: violations.map(({ field = "", ...rest }) => ({ ...rest, field: pathOf(String(field), request) })),
  };
}
