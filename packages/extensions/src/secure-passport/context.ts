import type { Logger } from "@parley/a2a/internal/base/index";
import type { JsonObject, Message, StandardSchema } from "@parley/a2a/internal/model/index";
import {
  id,
  isObject,
  object,
  optional,
  required,
  string,
  struct,
  type Schema,
} from "@parley/a2a/internal/model/schema";
import { standardSchema, jsonBytes, withoutOthers } from "@parley/a2a/internal/extensions/schemas";

/** URI of the extension, and the key of its value in `message.metadata`. */
export const securePassportUri =
  "https://github.com/a2aproject/a2a-samples/tree/main/samples/python/extensions/secure-passport";

/** A caller's claims about itself: the value under the URI in `message.metadata` (Secure Passport §3). */
export interface CallerContext {
  /** Name of the calling agent, such as `a2a://orchestrator.example.com`. */
  readonly clientId: string;
  /** The caller's session or conversation. */
  readonly sessionId?: string;
  /** Knowledge of the caller, such as preferences of its user: any JSON. */
  readonly state: JsonObject;
  /** A signature. This package writes a compact JWS with detached payload: see `signPassport()`. */
  readonly signature?: string;
}

const callerContext: Schema<CallerContext> = withoutOthers(
  ["clientId", "sessionId", "state", "signature"],
  object<CallerContext>({
    clientId: required(id),
    sessionId: optional(string),
    state: required(struct),
    signature: optional(string),
  }),
);

/** The schema of a passport. Unknown members are invalid, as in the sample (Secure Passport §3). */
export const callerContextSchema: StandardSchema<CallerContext> = standardSchema(callerContext);

/** `params` on a card (Secure Passport §2). */
export interface PassportParams {
  /** Keys of `state` that the agent understands. Absent: not stated. */
  readonly supportedStateKeys?: readonly string[];
}

/** Largest passport, in bytes of JSON. */
export const passportBytes: number = 64 << 10;

/** A passport, nothing, or the problem. */
export type ReadPassport = { readonly context?: CallerContext; readonly problem?: string };

/** Reads the passport of a message as a copy. */
export function readPassport({ metadata }: Pick<Message, "metadata">): ReadPassport {
  const given: unknown = metadata?.[securePassportUri];
  if (given === undefined || given === null) return {};
  if (!isObject(given)) return { problem: "it must be an object" };
  if (jsonBytes(given) > passportBytes) return { problem: `it is larger than ${passportBytes} bytes` };
  const checked = callerContextSchema["~standard"].validate(structuredClone(given));
  if (checked instanceof Promise) return {};
  if (checked.issues === undefined) return { context: checked.value };
  const [{ path = [], message } = { message: "is not valid" }] = checked.issues;
  return { problem: `${path.map(String).join(".") || "it"} ${message}` };
}

/**
 * A copy of the unverified passport of a message; `undefined` if it is absent or malformed.
 *
 * @param logger - Gets a warning about a malformed passport, without its content.
 *
 * @example
 * ```ts
 * const passport = passportOf(turn.message);
 * ```
 */
export function passportOf(message: Pick<Message, "metadata">, logger?: Logger): CallerContext | undefined {
  const { context, problem } = readPassport(message);
  if (problem !== undefined) logger?.warn(malformed, { problem });
  return context;
}

export const malformed = "Ignored a malformed Secure Passport";

/**
 * A message with a passport, which replaces any other.
 *
 * @example
 * ```ts
 * const carrying = withPassport(message("Book a flight"), { clientId: "a2a://desk.example.com", state: { tier: "Gold" } });
 * ```
 */
export function withPassport<M extends Pick<Message, "metadata">>(message: M, context: CallerContext): M {
  const { clientId, sessionId, state, signature } = context;
  const value = {
    clientId,
    ...(sessionId !== undefined && { sessionId }),
    ...(signature !== undefined && { signature }),
    state,
  };
  return { ...message, metadata: { ...message.metadata, [securePassportUri]: structuredClone(value) } };
}
