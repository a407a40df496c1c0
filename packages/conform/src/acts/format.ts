/*
 * The runner's model of tests. The source is ACTS, the declarative test format of the A2A repository, in any of its spellings. Members marked
 * "Ours" are additions to ACTS; docs/conform.md describes them.
 */

/** Requirement levels of tests (RFC 2119), the strictest first. */
export const levels = ["must", "should", "may"] as const;
/** Requirement level of a test (RFC 2119). */
export type Level = (typeof levels)[number];

export const transports = ["jsonrpc", "rest", "grpc"] as const;
export type Transport = (typeof transports)[number];

/** The binding of a card (A2A 1.0 §4.4.6) for each transport of ACTS. */
export const bindingOf: Readonly<Record<Transport, string>> = { jsonrpc: "JSONRPC", rest: "HTTP+JSON", grpc: "GRPC" };

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonMap;
/** A JSON object. */
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

/** A group of tests. */
export interface Suite {
  /** Identifier of the suite. */
  readonly id: string;
  /** Display name. */
  readonly name: string;
  /** Its tests. */
  readonly tests: readonly Test[];
}

export interface Preconditions {
  /** Required values of the card's `capabilities`. false also matches an absent member. */
  readonly capabilities: JsonMap;
  readonly skills: readonly string[];
  readonly transports: readonly Transport[];
  readonly extensions: readonly string[];
  /** Ours: the card requires an extension. */
  readonly requiredExtension: boolean;
  /** Ours: no input mode of the card includes this media type. */
  readonly refusesInput?: string;
}

/** One test. */
export interface Test {
  /** Identifier of the test. */
  readonly id: string;
  /** What it checks. */
  readonly name: string;
  /** Details. */
  readonly description?: string;
  /** The cited section of the specification. */
  readonly specRef?: string;
  /** Requirement level. */
  readonly level: Level;
  /** Keywords. */
  readonly tags: readonly string[];
  /** Empty: for every binding. */
  readonly transports: readonly Transport[];
  /** The conditions under which it applies. */
  readonly preconditions: Preconditions;
  /** Test behaviors that the agent must have (ACTS §11). */
  readonly behaviors: readonly string[];
  /** `runner_requirements` of ACTS: `auth_credentials`, `webhook_endpoint`. */
  readonly needs: readonly string[];
  /** Ours: requirements of the specification that the test proves, such as `3.1.2-first`. */
  readonly requirements: readonly string[];
  /** Its steps, in order. */
  readonly steps: readonly Step[];
  /** Assertions after the last step. */
  readonly assertions: readonly NamedAssertion[];
  /** `Major.Minor`, sent as `A2A-Version`. */
  readonly version: string;
  /** Values of `{{name}}` in its steps. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface StepBase {
  readonly id: string;
  readonly assertions: readonly NamedAssertion[];
  readonly capture: Readonly<Record<string, string>>;
  /** Pause before the step, in milliseconds. */
  readonly delay: number;
}

/** Ours: the credentials of a request. */
export type Credentials = "caller" | "none" | "invalid" | "other";

export interface Expecting {
  readonly expect?: Expect;
  readonly expectError?: ExpectError;
  readonly expectStream?: ExpectStream;
  readonly credentials: Credentials;
}

export interface CallStep extends StepBase, Expecting {
  readonly kind: "call";
  readonly operation: Operation;
  readonly params: JsonMap;
  /** Ours: headers that replace the runner's. null removes a header. */
  readonly headers: Readonly<Record<string, string | null>>;
  readonly repeat?: Repeat;
  /** Ours: the test continues after this number of events. The stream stays open. */
  readonly read?: number;
}

export interface RawStep extends StepBase, Expecting {
  readonly kind: "raw";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Json;
  readonly bodyRaw?: string;
  /** Ours: sends the body unchanged. Otherwise a message without an id gets one, as in a call. */
  readonly literal: boolean;
}

/** Ours: continues to read a stream that a call left open. */
export interface StreamStep extends StepBase {
  readonly kind: "stream";
  readonly stream: string;
  /** Waits for this number of events. Default: for the end of the stream. */
  readonly read?: number;
  /** Closes the connection afterwards. */
  readonly disconnect: boolean;
  readonly expectStream?: ExpectStream;
}

/** Ours: checks the deliveries to the runner's webhook. */
export interface DeliveriesStep extends StepBase {
  readonly kind: "deliveries";
  /** Waits for a delivery that matches `until`, then checks all deliveries against `each`. */
  readonly until?: Json;
  readonly each?: Json;
  /** Expects that there is no delivery. */
  readonly none: boolean;
}

export interface AssertionStep extends StepBase {
  readonly kind: "assertion";
  readonly assertion: NamedAssertion;
}

/** A step of a test for clients, which does not apply to servers. */
export interface ClientStep extends StepBase {
  readonly kind: "client";
}

export type Step = CallStep | RawStep | StreamStep | DeliveriesStep | AssertionStep | ClientStep;

export interface Expect {
  readonly status?: Json;
  readonly body?: Json;
  /** Ours: names are in lower case. */
  readonly headers?: Json;
  /** Expects any error. */
  readonly error: boolean;
  /** Ours: errors to accept instead of the response. An empty list accepts any error. */
  readonly orError?: readonly string[];
}

export interface ExpectError {
  /** Names of ACTS §6.2. The error must be one of them. Empty: any error. */
  readonly types: readonly string[];
  readonly message?: Json;
  readonly details?: Json;
  /** Ours: the HTTP status. */
  readonly status?: Json;
  /** Ours: names are in lower case. */
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
  /** Ours: response headers, with names in lower case. */
  readonly headers?: Json;
  /** Ours: each event with the envelope of its binding. */
  readonly eachRaw?: Json;
  /** Ours: id of the step of another stream that must have the same updates in the same order. */
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
