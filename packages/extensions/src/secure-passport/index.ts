/**
 * Secure Passport: a caller sends signed claims about itself.
 * @packageDocumentation
 */

import {
  A2AError,
  invalidParams,
  type AgentCard,
  type JsonObject,
  type Message,
} from "@parley/a2a/internal/model/index";
import { isObject, object, optional, strings } from "@parley/a2a/internal/model/schema";
import type {
  AcceptedCall,
  AcceptedInput,
  EventReads,
  ExtensionTurn,
  ExtensionTypes,
  MetadataField,
  RequestingCall,
} from "@parley/a2a/internal/protocol/index";
import { defineExtension, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { digestOf, fitting, sendsMessage } from "../shared/values.ts";
import {
  audienceOf,
  checkKey,
  type PassportProblem,
  type PassportVerdict,
  type PrivatePassportKey,
  signPassport,
  verifyPassport,
} from "./signature.ts";
import {
  callerContextSchema,
  malformed,
  readPassport,
  securePassportUri,
  withPassport,
  type CallerContext,
  type PassportParams,
} from "./context.ts";
import { memoryNonces, type PassportNonces, type PassportTrust } from "./trust.ts";

export {
  callerContextSchema,
  passportBytes,
  passportOf,
  securePassportUri,
  withPassport,
  type CallerContext,
  type PassportParams,
} from "./context.ts";
export {
  memoryNonces,
  type MemoryNoncesOptions,
  type PassportNonces,
  type PassportUse,
  type UsedPassport,
  passportKeys,
  type PassportKey,
  type PassportKeySet,
  type PassportKeysOptions,
  type PassportTrust,
} from "./trust.ts";
export {
  makePassportKey,
  passportKeySet,
  signPassport,
  verifyPassport,
  type PassportAlgorithm,
  type PassportProblem,
  type PassportVerdict,
  type PrivatePassportKey,
  type SignPassportOptions,
  type VerifyPassportOptions,
} from "./signature.ts";

/** A copy of a passport, for the agent. */
export interface Passport extends Omit<CallerContext, "signature"> {
  /** Whether the signature proves the client's identity, for this agent and this message. */
  readonly verified: boolean;
  /** Why it is not verified. */
  readonly problem?: PassportProblem;
}

/** The passport that a client sends with its messages. */
export interface CallerOptions {
  /** Name of the client, such as `a2a://desk.example.com`. */
  readonly clientId: string;
  /**
   * The claims: an object, or a function called per message; `undefined` sends no passport. If the agent's card lists
   * keys, the client sends only those.
   */
  readonly state:
    | JsonObject
    | ((message: Message, card: AgentCard) => JsonObject | undefined | Promise<JsonObject | undefined>);
  /** Its session. Default: none. */
  readonly sessionId?: string | ((message: Message) => string | undefined);
  /** Signs the passport for the agent of the card. Absent: unsigned. */
  readonly key?: PrivatePassportKey;
  /** Validity of a signature, in seconds. Default 300. */
  readonly lifetime?: number;
}

/** Options of `securePassport()`. */
export interface SecurePassportOptions {
  /** Keys of `state` that the agent understands. The card lists them, and the agent gets only these. Default: all. */
  readonly supportedStateKeys?: readonly string[];
  /** Trusted keys. Default: none, so that no passport is verified. */
  readonly trust?: PassportTrust;
  /**
   * Whether messages without a verified passport are rejected as `InvalidParams`; the card then requires the extension.
   * Default false: such passports have `verified: false`.
   */
  readonly require?: boolean;
  /** Names of the agent that a passport may have as its audience. Default: the addresses of its card, with their tenants. */
  readonly audience?: readonly string[];
  /** Remembers used passports. Default: in memory, 4 MiB. */
  readonly nonces?: PassportNonces;
  /** Tolerated difference of clocks, in seconds. Default 60. */
  readonly clockSkew?: number;
  /** Longest accepted validity, in seconds. Default 600. */
  readonly maxLifetime?: number;
  /** For clients: the passport to send with each message. Absent: none. */
  readonly caller?: CallerOptions;
}

/** Key of the verification result, which is stored with the message. A client's value is dropped. */
const verdictKey = `${securePassportUri}/verdict`;

const field = `message.metadata["${securePassportUri}"]`;

const paramsShape = object<PassportParams>({ supportedStateKeys: optional(strings) });

interface SecurePassportTypes extends ExtensionTypes {
  readonly metadata: { readonly message: { readonly passport: MetadataField<CallerContext> } };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: Passport | undefined;
  readonly event: EventReads<SecurePassportTypes>;
}

/** Secure Passport. `turn.ext()` gives a `Passport`, or `undefined`. */
type SecurePassportExtension = DefinedExtension<typeof securePassportUri, SecurePassportTypes>;

/**
 * Secure Passport: a caller sends signed claims about itself (the README names the specification). One value for
 * servers and clients; `turn.ext()` returns the passport, or `undefined`.
 *
 * @throws A2AError `InvalidParams` for invalid options.
 *
 * @example
 * ```ts
 * const trust = passportKeys({ "a2a://desk.example.com": "https://desk.example.com/.well-known/jwks.json" });
 * const passport = securePassport({ supportedStateKeys: ["loyalty_tier"], trust });
 * const agent = defineAgent({
 *   name: "Flights",
 *   description: "Books flights.",
 *   version: "1.0.0",
 *   skills: [],
 *   extensions: [passport],
 *   onMessage: (turn) => turn.reply(turn.ext(passport)?.verified === true ? "Welcome back." : "Who are you?"),
 * });
 * ```
 */
export function securePassport(options: SecurePassportOptions = {}): SecurePassportExtension {
  checkOptions(options);
  const { supportedStateKeys, require = false, caller } = options;
  const params: PassportParams = supportedStateKeys === undefined ? {} : { supportedStateKeys };
  const accept = acceptor(options);
  const attach = caller && attacher(caller);
  return defineExtension({
    uri: securePassportUri,
    description: "Reads signed claims of a caller about itself",
    kind: require ? "profile" : "data",
    required: require,
    params: { ...params },
    paramsSchema: standardSchema(paramsShape),
    // A retry with a new signature is the same message.
    metadata: { message: { passport: { key: securePassportUri, schema: callerContextSchema, volatile: true } } },
    onAccept: accept,
    onTurnStart: (turn: ExtensionTurn): Passport | undefined => passportOfTurn(turn, supportedStateKeys),
    ...(attach && { onRequest: attach }),
  });
}

function checkOptions({ require, trust, supportedStateKeys, caller }: SecurePassportOptions): void {
  const wrong = (name: string, description: string): Error => invalidParams([{ field: name, description }]);
  if (require === true && trust === undefined) throw wrong("trust", "is required with `require`");
  const areKeys =
    supportedStateKeys === undefined || supportedStateKeys.every((key: unknown) => typeof key === "string");
  if (!areKeys) throw wrong("supportedStateKeys", "must be a list of texts");
  if (caller === undefined) return;
  if (typeof caller.clientId !== "string" || caller.clientId === "") throw wrong("caller.clientId", "is required");
  if (caller.key !== undefined) checkKey(caller.key, "caller.key");
}

/* At a server. */

function acceptor(
  options: SecurePassportOptions,
): (input: AcceptedInput, call: AcceptedCall) => Promise<AcceptedInput> {
  const nonces = new WeakMap<object, PassportNonces>();
  return async (input: AcceptedInput, call: AcceptedCall): Promise<AcceptedInput> => {
    const message = withoutVerdict(input.message);
    const { context, problem } = readPassport(message);
    if (problem !== undefined) call.logger.warn(malformed, { problem });
    if (context === undefined) {
      if (options.require === true) throw refused("", "is required: this agent needs a signed passport");
      return { ...input, message };
    }
    const verdict = await verdictOf(context, message, options, call, nonces).catch(
      (cause: unknown): PassportVerdict => {
        // The hook must not fail. Otherwise the message would be accepted unchanged, with a verdict forged by its sender.
        call.logger.error("Failed to verify a Secure Passport", { cause });
        return { verified: false, problem: "unavailable" };
      },
    );
    if (options.require === true && !verdict.verified) throw refusedFor(verdict.problem);
    return { ...input, message: { ...message, metadata: { ...message.metadata, [verdictKey]: { ...verdict } } } };
  };
}

function withoutVerdict(message: Message): Message {
  if (message.metadata?.[verdictKey] === undefined) return message;
  const { [verdictKey]: _, ...metadata } = message.metadata;
  return { ...message, metadata };
}

async function verdictOf(
  context: CallerContext,
  message: Message,
  options: SecurePassportOptions,
  { card, clock, principal }: AcceptedCall,
  memories: WeakMap<object, PassportNonces>,
): Promise<PassportVerdict> {
  const { trust, clockSkew, maxLifetime } = options;
  if (trust === undefined) {
    return { verified: false, problem: context.signature === undefined ? "unsigned" : "untrusted" };
  }
  const audience = options.audience ?? (card.supportedInterfaces ?? []).map(audienceOf);
  const verdict = await verifyPassport(context, {
    trust,
    audience,
    clock,
    ...(clockSkew !== undefined && { clockSkew }),
    ...(maxLifetime !== undefined && { maxLifetime }),
  });
  if (!verdict.verified) return verdict;
  let nonces = options.nonces ?? memories.get(clock);
  if (nonces === undefined) memories.set(clock, (nonces = memoryNonces({ clock })));
  // If storing the message failed, the client may send it again with a renewed passport.
  const use = await digestOf([principal.subject, principal.organization ?? null, withPassport(message, unnamed)]);
  const { jti, expires } = verdict;
  const answer = await nonces.use({ clientId: context.clientId, jti, use, until: expires });
  if (answer === "fresh") return verdict;
  return { verified: false, problem: answer === "used" ? "replayed" : "unavailable" };
}

/** Replaces the passport in the hash of a message: a renewed passport must not change the hash. */
const unnamed: CallerContext = { clientId: "", state: {} };

const reasons: Readonly<Record<PassportProblem, string>> = {
  unsigned: "is required",
  unreadable: "must be a compact JWS without its payload",
  untrusted: "must be by a trusted key of this client",
  "outdated-key": "must be by a key that is currently valid",
  invalid: "does not match this passport",
  expired: "is not currently valid, or valid for too long",
  audience: "is for another agent",
  replayed: "was used before",
  unavailable: "cannot currently be verified",
};

function isProblem(value: unknown): value is PassportProblem {
  return typeof value === "string" && Object.hasOwn(reasons, value);
}

function refusedFor(problem: PassportProblem): A2AError {
  if (problem !== "unavailable") return refused(".signature", reasons[problem]);
  return new A2AError("Unavailable", "The passport cannot currently be verified");
}

function refused(member: string, description: string): A2AError {
  return invalidParams([{ field: `${field}${member}`, description }]);
}

function passportOfTurn({ message }: ExtensionTurn, keys: readonly string[] | undefined): Passport | undefined {
  const verdict: unknown = message.metadata?.[verdictKey];
  const { context } = readPassport(message);
  if (context === undefined || !isObject(verdict)) return undefined;
  const { clientId, sessionId, state } = context;
  const verified = verdict["verified"] === true;
  return {
    clientId,
    ...(sessionId !== undefined && { sessionId }),
    state: keys === undefined ? state : only(state, keys),
    verified,
    ...(!verified && isProblem(verdict["problem"]) && { problem: verdict["problem"] }),
  };
}

function only(state: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(state).filter(([key]) => keys.includes(key)));
}

/* At a client. */

function attacher(caller: CallerOptions): <Request>(request: Request, call: RequestingCall) => Promise<Request> {
  return async (request, call) => {
    if (!sendsMessage(request, call.operation)) return request;
    const { message } = request;
    // Keeps a passport that the caller set.
    if (message.metadata?.[securePassportUri] !== undefined) return request;
    const context = await passportFor(caller, message, call);
    return context === undefined ? request : { ...request, message: withPassport(message, context) };
  };
}

async function passportFor(
  { clientId, key, lifetime, sessionId, state }: CallerOptions,
  message: Message,
  { card, params, clock }: RequestingCall,
): Promise<CallerContext | undefined> {
  const whole = typeof state === "function" ? await state(message, card) : state;
  if (whole === undefined) return undefined;
  const { supportedStateKeys } = fitting(paramsShape, params) ?? {};
  const session = typeof sessionId === "function" ? sessionId(message) : sessionId;
  const context: CallerContext = {
    clientId,
    ...(session !== undefined && { sessionId: session }),
    state: supportedStateKeys === undefined ? whole : only(whole, supportedStateKeys),
  };
  const to = card.supportedInterfaces?.[0];
  if (key === undefined || to === undefined) return context;
  return signPassport(context, key, { audience: audienceOf(to), clock, ...(lifetime !== undefined && { lifetime }) });
}
