/**
 * ACTS files as the runner keeps them: the declarative test format of the A2A repository, every spelling of it read into
 * one shape. What ACTS has no words for and a good suite needs is marked "ours"; docs/conform.md tells it.
 */

export const levels = ["must", "should", "may"] as const;
export type Level = (typeof levels)[number];

export const transports = ["jsonrpc", "rest", "grpc"] as const;
export type Transport = (typeof transports)[number];

/** The binding of a card (A2A 1.0 §4.4.6) that a transport of ACTS stands for. */
export const bindingOf: Readonly<Record<Transport, string>> = { jsonrpc: "JSONRPC", rest: "HTTP+JSON", grpc: "GRPC" };

export type Json = null | boolean | number | string | readonly Json[] | JsonMap;
export interface JsonMap {
  readonly [key: string]: Json;
}

export const operations = [
  "send_message",
  "send_streaming_message",
  "get_task",
  "list_tasks",
  "cancel_task",
  "subscribe_to_task",
  "get_agent_card",
  "get_extended_agent_card",
  "create_push_config",
  "get_push_config",
  "list_push_configs",
  "delete_push_config",
] as const;
export type Operation = (typeof operations)[number];

export interface Suite {
  readonly id: string;
  readonly name: string;
  readonly tests: readonly Test[];
}

export interface Preconditions {
  /** Members of the card's `capabilities`; false also stands for an absent one. */
  readonly capabilities: JsonMap;
  readonly skills: readonly string[];
  readonly transports: readonly Transport[];
  readonly extensions: readonly string[];
  /** Ours: that the card marks an extension as required. */
  readonly requiredExtension: boolean;
  /** Ours: a media type that none of the card's input modes takes. */
  readonly refusesInput?: string;
}

export interface Test {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly specRef?: string;
  readonly level: Level;
  readonly tags: readonly string[];
  /** Empty: for every binding. */
  readonly transports: readonly Transport[];
  readonly preconditions: Preconditions;
  /** Prefixes of ACTS §11 that the agent under test has to know. */
  readonly behaviors: readonly string[];
  /** What ACTS calls `runner_requirements`: `auth_credentials`, `webhook_endpoint`. */
  readonly needs: readonly string[];
  /** Ours: requirements of the specification that the test proves, such as `3.1.2-first`. */
  readonly requirements: readonly string[];
  readonly steps: readonly Step[];
  readonly assertions: readonly NamedAssertion[];
  /** `Major.Minor`, sent as `A2A-Version`. */
  readonly version: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** What every step has. */
export interface StepBase {
  readonly id: string;
  readonly assertions: readonly NamedAssertion[];
  readonly capture: Readonly<Record<string, string>>;
  /** Milliseconds before the step. */
  readonly delay: number;
}

/** Whose credentials a request carries (ours). */
export type Credentials = "caller" | "none" | "invalid" | "other";

interface Expecting {
  readonly expect?: Expect;
  readonly expectError?: ExpectError;
  readonly expectStream?: ExpectStream;
  readonly credentials: Credentials;
}

export interface CallStep extends StepBase, Expecting {
  readonly kind: "call";
  readonly operation: Operation;
  readonly params: JsonMap;
  /** Ours: headers over those of the runner; null takes one away. */
  readonly headers: Readonly<Record<string, string | null>>;
  readonly repeat?: Repeat;
  /** Ours: the test goes on after so many events, the stream stays open. */
  readonly read?: number;
}

export interface RawStep extends StepBase, Expecting {
  readonly kind: "raw";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Json;
  readonly bodyRaw?: string;
  /** Ours: the body goes out as it stands; else a message without an id gets one, as in a call. */
  readonly literal: boolean;
}

/** Ours: goes on with a stream that a call has left open. */
export interface StreamStep extends StepBase {
  readonly kind: "stream";
  readonly stream: string;
  /** Waits until there are so many events; absent: until the stream ends. */
  readonly read?: number;
  /** Closes the connection after that. */
  readonly disconnect: boolean;
  readonly expectStream?: ExpectStream;
}

/** Ours: what came to the runner's webhook. */
export interface DeliveriesStep extends StepBase {
  readonly kind: "deliveries";
  /** Waits until a delivery matches; every one of `each` is asked of all that came until then. */
  readonly until?: Json;
  readonly each?: Json;
  /** Nothing may have come. */
  readonly none: boolean;
}

export interface AssertionStep extends StepBase {
  readonly kind: "assertion";
  readonly assertion: NamedAssertion;
}

/** For the parser of a client: nothing that a server could be asked. */
export interface ClientStep extends StepBase {
  readonly kind: "client";
}

export type Step = CallStep | RawStep | StreamStep | DeliveriesStep | AssertionStep | ClientStep;

export interface Expect {
  readonly status?: Json;
  readonly body?: Json;
  /** Ours: by their names in small letters. */
  readonly headers?: Json;
  /** Any error will do. */
  readonly error: boolean;
  /** Ours: these errors are as good as the answer that is described; none named: any error. */
  readonly orError?: readonly string[];
}

export interface ExpectError {
  /** Names of ACTS §6.2, any of them; empty: any error. */
  readonly types: readonly string[];
  readonly message?: Json;
  readonly details?: Json;
  /** Ours: of the HTTP answer. */
  readonly status?: Json;
  /** Ours: by their names in small letters. */
  readonly headers?: Json;
}

export interface ExpectStream {
  readonly minCount?: number;
  readonly maxCount?: number;
  readonly timeout?: number;
  readonly monotonic: boolean;
  readonly events: readonly EventAssertion[];
  readonly finalEvent?: Json;
  readonly eachEvent?: Json;
  /** Ours: of the answer that the stream is. */
  readonly headers?: Json;
  /** Ours: each `data` as it stands on the wire, with the envelope of its binding. */
  readonly eachRaw?: Json;
  /** Ours: another stream whose updates must be the same ones in the same order. */
  readonly sameUpdatesAs?: string;
}

export interface EventAssertion {
  readonly description?: string;
  readonly anywhere: boolean;
  readonly index: number;
  readonly assertion: Json;
}

export interface Repeat {
  readonly until: string;
  readonly attempts: number;
  readonly delay: number;
  readonly backoff: "none" | "linear" | "exponential";
}

export interface NamedAssertion {
  readonly description?: string;
  readonly source: string;
  readonly path?: string;
  readonly match?: Json;
  readonly any?: CollectionMatch;
  readonly all?: CollectionMatch;
  readonly none?: CollectionMatch;
}

export interface CollectionMatch {
  readonly path: string;
  readonly match: Json;
}
