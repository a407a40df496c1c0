import { isObject } from "../model/schema.ts";
import {
  TextPayload,
  type AnyExtension,
  type ExtensionMethod,
  type ExtensionMethods,
  type MethodName,
  type MethodRoute,
  type Payload,
  type ExtensionCall,
  type MethodRequest,
} from "../protocol/index.ts";
import { fit, misfits } from "./schemas.ts";
import { jsonTextOf } from "../base/json-text.ts";
import {
  A2AError,
  hasCode,
  invalidParams,
  maxViolations,
  withFields,
  type FieldViolation,
  type JsonObject,
  type StandardSchema,
} from "../model/index.ts";

/**
 * The names and paths of an extension's method on the wire. A client passes them as `outgoing.method` of the context of the call.
 *
 * @param name - Its name in `methods`.
 */
export function methodRoute(
  name: MethodName,
  { jsonrpc = name, rest, grpc, idempotent = false }: Omit<ExtensionMethod, "onCall">,
): MethodRoute {
  return { name, jsonrpc, rest, grpc, idempotent };
}

/** A method, and the extension that defines it. */
export interface OwnedMethod {
  /** The URI of the extension. */
  readonly uri: string;
  readonly route: MethodRoute;
  readonly method: ExtensionMethod;
}

/** The methods of some extensions. */
export function methodsOf(extensions: Iterable<AnyExtension>): readonly OwnedMethod[] {
  return Array.from(extensions).flatMap(({ uri, methods = {} }) =>
    Object.entries(methods as ExtensionMethods).map(([name, method]) => {
      return { uri, method, route: methodRoute(name as MethodName, method) };
    }),
  );
}

/**
 * Calls a method, and checks its request and its answer.
 *
 * @param request - Untrusted JSON.
 * @throws A2AError `InvalidParams` with the fields, an `A2AError` of the method, and `InternalError` if the method throws
 * anything else or its answer does not match its schema; `cause` is for the log.
 */
export async function callMethod(
  own: OwnedMethod,
  { tenant: _, ...request }: MethodRequest,
  call: ExtensionCall,
): Promise<Payload<JsonObject>> {
  const { method } = own;
  const asked = fit(method.request, request);
  if (!asked.ok) throw invalidParams(wrongFields(method.request, request));
  let answer: unknown;
  try {
    answer = await method.onCall?.(asked.value, call);
  } catch (thrown) {
    if (thrown instanceof A2AError && !hasCode(thrown, "InvalidResponse")) throw thrown;
    throw badAnswer(own, `failed: ${String(thrown)}`, thrown);
  }
  // Checks the serialized answer, because `toJSON` has then run, and members that are not JSON have been dropped.
  const text = textOf(own, answer);
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw badAnswer(own, "must answer a JSON object");
  const wrong = wrongFields(method.response, value);
  if (wrong.length > 0) throw badAnswer(own, withFields("its answer does not match its schema", wrong));
  if (text.length > unreserved) await call.context.reserve?.(text.length);
  return new TextPayload<JsonObject>(text);
}

/** Answers up to this many characters need no memory reservation. */
const unreserved = 256 << 10;

function wrongFields(schema: StandardSchema, value: object): readonly FieldViolation[] {
  const fields = misfits(schema, "", value).slice(0, maxViolations);
  return fields.map(({ field, description }) => ({ field: field.replace(/^\./, ""), description }));
}

function textOf(own: OwnedMethod, answer: unknown): string {
  try {
    const text: string | undefined = jsonTextOf(answer);
    if (text !== undefined) return text;
  } catch (thrown) {
    throw badAnswer(own, `returned a non-JSON answer: ${String(thrown)}`, thrown);
  }
  throw badAnswer(own, "must answer a JSON object");
}

/** An error whose details go to the log, not to the caller. */
function badAnswer({ uri, route: { name } }: OwnedMethod, problem: string, thrown?: unknown): A2AError {
  const cause = new Error(`${name} of the extension ${uri} ${problem}`, { cause: thrown });
  return new A2AError("InternalError", undefined, { cause });
}
