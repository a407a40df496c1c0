import { expect } from "vitest";
import { wireErrors, type A2AError, type FieldViolation } from "@parley/a2a/model";
import { wireStatuses, type WireErrorCode } from "@parley/a2a/internal/model/index";
import { codecV1, type Codec } from "@parley/a2a/protocol";
import { grpcWire, type JsonRpcCodec, type RestCodec } from "@parley/a2a/internal/wires";
import { statusCode, type StatusName } from "../../packages/grpc/src/status.ts";
import type { Answer } from "./client.ts";
import type { Ending } from "./grpc.ts";

/** A binding's response: accepted, or rejected with the name of an error and its fields. */
export type Outcome =
  | { readonly accepted: true }
  | {
      readonly accepted: false;
      readonly code: string;
      readonly message: string;
      readonly fields: readonly FieldViolation[];
    };

const accepted: Outcome = { accepted: true };

/** The outcome for an error that was decoded from the codes and details of a response. */
function refused({ code, message, fields }: A2AError): Outcome {
  return { accepted: false, code, message, fields };
}

export function ofJsonRpc({ status, type, body }: Answer, codec: JsonRpcCodec = codecV1): Outcome {
  if (type.startsWith("text/event-stream")) return body.includes('"error"') ? expect.fail(body) : accepted;
  const answer = JSON.parse(body) as { jsonrpc: unknown; result?: unknown; error?: { code: number } };
  expect(answer.jsonrpc).toBe("2.0");
  if (answer.error === undefined) {
    expect(status).toBe(200);
    expect(answer.result).toBeDefined();
    return accepted;
  }
  const error = codec.bindings.JSONRPC.decodeError(answer.error);
  const row = wireErrors[error.code as WireErrorCode];
  expect({ code: answer.error.code, status }).toEqual({ code: row.jsonrpc, status: row.outside ? row.http : 200 });
  return refused(error);
}

export function ofRest({ status, type, body }: Answer, codec: RestCodec = codecV1): Outcome {
  if (status === 200) return accepted;
  expect(type).toContain("application/json");
  const answer = JSON.parse(body) as { error: { code: number; status: string } };
  const error = codec.bindings["HTTP+JSON"].decodeError(status, answer);
  const row = wireErrors[error.code as WireErrorCode];
  expect({ code: answer.error.code, status, name: answer.error.status }).toEqual({
    code: row.http,
    status: row.http,
    name: wireStatuses[error.code as WireErrorCode],
  });
  return refused(error);
}

/** UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS: no request may cause these failures of a server. */
const faults: readonly unknown[] = [2, 13, 14, 15];

export function ofGrpc({ error, status }: Ending, codec: Codec = codecV1): Outcome {
  if (error === undefined) return accepted;
  expect(faults, error.message).not.toContain(status);
  const code = error.code as WireErrorCode;
  expect(status).toBe(statusCode((grpcWire(codec).statuses?.[code] ?? wireStatuses[code]) as StatusName));
  return refused(error);
}
