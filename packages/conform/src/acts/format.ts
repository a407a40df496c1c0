/**
 * Tests in the form that the runner keeps them in. The source is ACTS, the declarative test format of the A2A repository, in any of
 * its spellings. Members that ACTS does not have are marked "Ours"; docs/conform.md describes them.
 */

export const levels = ["must", "should", "may"] as const;
/** How binding a test is, as RFC 2119 has it. */
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

/** Tests that belong together. */
export interface Suite {
  /** Identifier of the suite. */
  readonly id: string;
  /** Name for people. */
  readonly name: string;
  /** Its tests. */
  readonly tests: readonly Test[];
}

export interface Preconditions {
  /** Members of the card's `capabilities`, with their values; false also fits an absent member. */
  readonly capabilities: JsonMap;
  readonly skills: readonly string[];
  readonly transports: readonly Transport[];
  readonly extensions: readonly string[];
  /** Ours: only where the card requires an extension. */
  readonly requiredExtension: boolean;
  /** Ours: only where no input mode of the card includes this media type. */
  readonly refusesInput?: string;
}

/** One test. */
export interface Test {
  /** Identifier of the test. */
  readonly id: string;
  /** What it checks, for people. */
  readonly name: string;
  /** More about it, for people. */
  readonly description?: string;
  /** The section of the specification that it cites. */
  readonly specRef?: string;
  /** How binding it is. */
  readonly level: Level;
  /** Keywords. */
  readonly tags: readonly string[];
  /** Empty: for every binding. */
  readonly transports: readonly Transport[];
  /** Where it applies. */
  readonly preconditions: Preconditions;
  /** Behaviours that the agent under test must have (ACTS §11). */
  readonly behaviors: readonly string[];
  /** What ACTS calls `runner_requirements`: `auth_credentials`, `webhook_endpoint`. */
  readonly needs: readonly string[];
  /** Ours: requirements of the specification that the test proves, such as `3.1.2-first`. */
  readonly requirements: readonly string[];
  /** What it does, in order. */
  readonly steps: readonly Step[];
  /** What must hold after its steps. */
  readonly assertions: readonly NamedAssertion[];
  /** `Major.Minor`, sent as `A2A-Version`. */
  readonly version: string;
  /** Values of `{{name}}` in its steps. */
  readonly variables: Readonly<Record<string, string>>;
}

/** What every step has. */
export interface StepBase {
  readonly id: string;
  readonly assertions: readonly NamedAssertion[];
  readonly capture: Readonly<Record<string, string>>;
  /** Pause before the step, in milliseconds. */
  readonly delay: number;
}

/** Ours: whose credentials a request carries. */
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
  /** Ours: headers that replace those of the runner; null removes one. */
  readonly headers: Readonly<Record<string, string | null>>;
  readonly repeat?: Repeat;
  /** Ours: the test continues after that many events, while the stream stays open. */
  readonly read?: number;
}

export interface RawStep extends StepBase, Expecting {
  readonly kind: "raw";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Json;
  readonly bodyRaw?: string;
  /** Ours: the body is sent as it is. Otherwise a message without an id gets one, as in a call. */
  readonly literal: boolean;
}

/** Ours: reads on from a stream that a call has left open. */
export interface StreamStep extends StepBase {
  readonly kind: "stream";
  readonly stream: string;
  /** Waits until there are that many events; absent: until the stream ends. */
  readonly read?: number;
  /** Then closes the connection. */
  readonly disconnect: boolean;
  readonly expectStream?: ExpectStream;
}

/** Ours: checks the deliveries to the runner's webhook. */
export interface DeliveriesStep extends StepBase {
  readonly kind: "deliveries";
  /** Waits until a delivery matches `until`, then checks every delivery so far against `each`. */
  readonly until?: Json;
  readonly each?: Json;
  /** Expects that there is no delivery. */
  readonly none: boolean;
}

export interface AssertionStep extends StepBase {
  readonly kind: "assertion";
  readonly assertion: NamedAssertion;
}

/** A step for tests of clients, which servers are not asked. */
export interface ClientStep extends StepBase {
  readonly kind: "client";
}

export type Step = CallStep | RawStep | StreamStep | DeliveriesStep | AssertionStep | ClientStep;

export interface Expect {
  readonly status?: Json;
  readonly body?: Json;
  /** Ours: by their names in lower case. */
  readonly headers?: Json;
  /** Expects any error. */
  readonly error: boolean;
  /** Ours: errors that are accepted in place of the answer; an empty list accepts any. */
  readonly orError?: readonly string[];
}

export interface ExpectError {
  /** Names of ACTS §6.2, one of which the error must have; empty: any error. */
  readonly types: readonly string[];
  readonly message?: Json;
  readonly details?: Json;
  /** Ours: the HTTP status. */
  readonly status?: Json;
  /** Ours: by their names in lower case. */
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
  /** Ours: headers of the answer, by their names in lower case. */
  readonly headers?: Json;
  /** Ours: each event with the envelope of its binding. */
  readonly eachRaw?: Json;
  /** Ours: id of the step with another stream that must have the same updates in the same order. */
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
