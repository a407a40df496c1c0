import { expect } from "vitest";

/** The expected results of a client's steps. They depend only on how its SDK presents versions, parts and errors. */

export type Version = "1.0" | "0.3";
export type BindingName = "JSONRPC" | "HTTP+JSON" | "GRPC";

export type Outcome = { readonly result: unknown } | { readonly error: string };

/** How a client presents values from the wire. */
export interface Dialect {
  /** Whether it is a 0.3 SDK, with `final` and that version's parts. */
  readonly old: boolean;
  /** Its name for a protocol error. */
  error(name: ErrorName): string;
}

const errors = {
  TaskNotFound: ["-32001", "404", "NOT_FOUND"],
  TaskNotCancelable: ["-32002", "400", "FAILED_PRECONDITION"],
  PushNotificationNotSupported: ["-32003", "400", "UNIMPLEMENTED"],
  UnsupportedOperation: ["-32004", "400", "UNIMPLEMENTED"],
  ContentTypeNotSupported: ["-32005", "400", "INVALID_ARGUMENT"],
  InvalidParams: ["-32602", "400", "INVALID_ARGUMENT"],
} as const;

export type ErrorName = keyof typeof errors;

const bindings: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/** The code, or the HTTP or gRPC status, because 0.3 clients have no error names. */
export function wireError(name: ErrorName, binding: BindingName): string {
  return errors[name][bindings.indexOf(binding)] ?? name;
}

const data = { list: [1.5, true, null, "é"], deep: { "": {} } };

const parts = [
  { raw: "AAH+/w==", filename: "a.bin", mediaType: "application/octet-stream" },
  { url: "https://example.com/a.txt", filename: "a.txt", mediaType: "text/plain" },
  { data },
];

const oldParts = [
  { kind: "file", file: { bytes: "AAH+/w==", name: "a.bin", mimeType: "application/octet-stream" } },
  { kind: "file", file: { uri: "https://example.com/a.txt", name: "a.txt", mimeType: "text/plain" } },
  { kind: "data", data },
];

/** The steps of a client that calls our agent, by name. */
function stepsOf(version: Version, { old, error }: Dialect): Readonly<Record<string, Outcome>> {
  const final = old ? ", final" : "";
  const fails = (name: ErrorName): Outcome => ({ error: error(name) });
  return {
    card: { result: { name: "Parley", skills: ["echo"] } },
    "send-and-wait": { result: { state: "COMPLETED", artifacts: ["echo hello"] } },
    "send-and-go": { result: expect.stringMatching(/^(SUBMITTED|WORKING)$/) },
    reply: { result: ["message direct"] },
    failure: { result: ["FAILED", "failed"] },
    stream: { result: ["task SUBMITTED", "status WORKING", "artifact echo hello", `status COMPLETED${final}`] },
    "stream-reply": { result: ["message direct"] },
    question: {
      result: {
        states: ["INPUT_REQUIRED", "COMPLETED"],
        same: true,
        history: ["ask", "more", "echo it"],
        short: ["echo it"],
      },
    },
    "question-streamed": { result: ["task SUBMITTED", `status INPUT_REQUIRED${final}`] },
    // 0.3 lists tasks only over REST, and no 0.3 SDK supports it.
    ...(version === "1.0" && { tasks: { result: { pages: [2, 1], total: 3, more: [true, false] } } }),
    cancel: { result: { state: "CANCELED", rest: [`status CANCELED${final}`] } },
    subscribe: {
      result: { first: "task WORKING", rest: [`status CANCELED${final}`], other: [`status CANCELED${final}`] },
    },
    parts: { result: old ? oldParts : parts },
    "bytes-of-file": { result: ["message 4"] },
    "extended-card": { result: "For anyone" },
    "get-unknown": fails("TaskNotFound"),
    "cancel-unknown": fails("TaskNotFound"),
    "subscribe-unknown": fails("TaskNotFound"),
    "send-to-unknown": fails("TaskNotFound"),
    "stream-to-unknown": fails("TaskNotFound"),
    "cancel-finished": fails("TaskNotCancelable"),
    "send-to-finished": fails("UnsupportedOperation"),
    "subscribe-to-finished": version === "1.0" ? fails("UnsupportedOperation") : { result: ["task COMPLETED"] },
    "wrong-context": fails("InvalidParams"),
    "media-type": fails("ContentTypeNotSupported"),
    "push-create": fails("PushNotificationNotSupported"),
    "push-get": fails("PushNotificationNotSupported"),
    "push-list": fails("PushNotificationNotSupported"),
    "push-delete": fails("PushNotificationNotSupported"),
  };
}

/** Steps for which a peer has its own results. */
export interface Peculiarity {
  readonly why: string;
  readonly version?: Version;
  readonly binding?: BindingName;
  /** The results of steps. `absent` if it does not have the step. */
  readonly steps: Readonly<Record<string, Outcome | "absent">>;
}

export interface ExpectedStep {
  readonly step: string;
  /** The step, and why its result differs. */
  readonly name: string;
  readonly outcome: Outcome | "absent";
}

/** The steps for one version and binding, with the peer's own results. */
export function expectedSteps(
  version: Version,
  binding: BindingName,
  dialect: Dialect,
  peculiar: readonly Peculiarity[],
): readonly ExpectedStep[] {
  const steps = new Map<string, ExpectedStep>();
  for (const [step, outcome] of Object.entries(stepsOf(version, dialect)))
    steps.set(step, { step, name: step, outcome });
  for (const { why, steps: own, ...where } of peculiar) {
    if ((where.version ?? version) !== version || (where.binding ?? binding) !== binding) continue;
    for (const [step, outcome] of Object.entries(own)) steps.set(step, { step, name: `${step}: ${why}`, outcome });
  }
  return [...steps.values()];
}
