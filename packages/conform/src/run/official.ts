import type {
  CallStep,
  DeliveriesStep,
  Expect,
  Json,
  JsonMap,
  RawStep,
  Step,
  StreamStep,
  Test,
} from "../acts/format.ts";
import type { Skipped } from "../report/report.ts";
import type { Target } from "./target.ts";

/*
 * Some tests of the official files are marked `runner-special`: their steps alone pass on any server, and the runner has to make the
 * check that their description asks for.
 */

/**
 * What the runner asks instead of the steps of a test, for the report, and the test that asks it. The verdict is then the runner's
 * reading of the specification.
 */
type Check = readonly [reading: string, change: (test: Test, target: Target) => Test | Skipped];

const aboutClients: Skipped = { reason: "is about clients, not servers", applies: false };
const unsaid: Skipped = { reason: "asks the runner for something that its steps do not say", applies: true };
const nothing = { assertions: [], capture: {}, delay: 0 } as const;

function call(id: string, operation: CallStep["operation"], params: JsonMap, more: Partial<CallStep> = {}): CallStep {
  return { ...nothing, id, kind: "call", operation, params, headers: {}, credentials: "caller", ...more };
}

function stream(id: string, of: string, more: Partial<StreamStep>): StreamStep {
  return { ...nothing, id, kind: "stream", stream: of, disconnect: false, ...more };
}

function deliveries(more: Partial<DeliveriesStep>): DeliveriesStep {
  return { ...nothing, id: "deliveries", kind: "deliveries", none: false, ...more };
}

function userMessage(text: string): JsonMap {
  return { message: { role: "ROLE_USER", parts: [{ text }] } };
}

/** The test with changed calls and raw requests. */
function changed(test: Test, change: (step: CallStep | RawStep) => Step): Test {
  return {
    ...test,
    steps: test.steps.map((step) => (step.kind === "call" || step.kind === "raw" ? change(step) : step)),
  };
}

const expecting =
  (more: Partial<Expect>) =>
  (test: Test): Test =>
    changed(test, (step) => ({ ...step, expect: { ...(step.expect ?? { error: false }), ...more } }));

const shaped = (schema: string): Check => [
  `${schema === "AgentCard" ? "the public card is a valid AgentCard" : `the answer is a valid ${schema}`}: types, required fields, names`,
  expecting({ body: { schema } }),
];

/** Two or three steps at the beginning of a test with a task that takes its time. */
const start = call(
  "start",
  "send_message",
  { ...userMessage("tck-long-running start"), configuration: { returnImmediately: true } },
  { capture: { taskId: "task.id" } },
);
const subscribe = (id: string): CallStep => call(id, "subscribe_to_task", { id: "{{start.taskId}}" }, { read: 1 });
const toTheEnd = {
  minCount: 2,
  monotonic: true,
  events: [],
  finalEvent: { status: { state: { one_of: ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"] } } },
} as const;

const refused: Json = { one_of: [401, 403] };
const needsCredentials = { needs: ["auth_credentials"] } as const;

const unauthorized =
  (credentials: "none" | "invalid") =>
  (test: Test): Test => ({
    ...changed(test, ({ expect: _, ...step }) => ({
      ...step,
      credentials,
      expectError: { types: [], status: refused },
    })),
    ...needsCredentials,
  });

const weakCredentials = (test: Test, { variables }: Target): Test | Skipped =>
  Object.hasOwn(variables, "insufficientAuthToken")
    ? changed(test, ({ expect: _, ...step }) => ({ ...step, expectError: { types: [], status: 403 } }))
    : { reason: "needs a caller without permissions", applies: true, option: "insufficientAuthToken" };

/** A2A 1.0 §3.3.2: the same code, the same HTTP status. */
const otherOwner: Check = [
  "a task of another caller and one that does not exist give the same error",
  (test) => ({
    ...test,
    ...needsCredentials,
    behaviors: ["tck-complete-task"],
    steps: [
      call("create", "send_message", userMessage("tck-complete-task private"), {
        credentials: "other",
        capture: { taskId: "task.id" },
      }),
      call("mine", "get_task", { id: "{{create.taskId}}" }, { expectError: { types: ["TaskNotFoundError"] } }),
      call("missing", "get_task", { id: "{{$uuid}}" }, { expectError: { types: ["TaskNotFoundError"] } }),
    ],
  }),
];

const completed = { status: { state: "TASK_STATE_COMPLETED" } };
const lastDelivery: Json = { body: { any_of: [{ statusUpdate: completed }, { task: completed }] } };

const delivered =
  (each: Json) =>
  (test: Test): Test => ({
    ...test,
    needs: ["webhook_endpoint"],
    // Some of these files refer to the step `create` as `create-task`.
    steps: [
      ...test.steps.map((step) => JSON.parse(JSON.stringify(step).replaceAll("create-task", "create")) as Step),
      deliveries({ until: lastDelivery, each }),
    ],
  });

const deliveredWithCredentials: Check = [
  "every delivery carries the credentials that were given with the webhook",
  delivered({ headers: { authorization: "Bearer test-token" } }),
];

/** The operations that SEC-AUTH-004 is about. Its steps call one of them. */
const guarded: readonly (readonly [CallStep["operation"], JsonMap])[] = [
  ["send_message", userMessage("tck-complete-task")],
  ["get_task", { id: "{{$uuid}}" }],
  ["list_tasks", {}],
  ["cancel_task", { id: "{{$uuid}}" }],
  ["subscribe_to_task", { id: "{{$uuid}}" }],
  ["list_push_configs", { taskId: "{{$uuid}}" }],
  ["get_extended_agent_card", {}],
];

/** The checks by the id of their test. */
const checks: Readonly<Record<string, Check>> = {
  "CARD-CACHE-001": [
    "the public card comes with an ETag, or a Cache-Control that has a max-age",
    expecting({ headers: { any_of: [{ "cache-control": { contains: "max-age" } }, { etag: { exists: true } }] } }),
  ],
  "CARD-SCHEMA-001": shaped("AgentCard"),
  // A server may accept a client's contextId or refuse it (§3.4.1).
  "CORE-CTX-001": [
    "a contextId of the client is accepted or refused, and not silently replaced",
    (test) => {
      const own = { contextId: "client-generated-context-that-should-be-rejected" };
      const expect = { error: false, orError: [], body: { any_of: [{ task: own }, { message: own }] } };
      return changed(test, ({ expectError: _, ...step }) => ({ ...step, expect }));
    },
  ],
  "CORE-ERR-009": otherOwner,
  "DM-SERIAL-002": shaped("SendMessageResponse"),
  "PUSH-DELIV-001": deliveredWithCredentials,
  "PUSH-DELIV-002": [
    "deliveries come by POST, and the last state of the task is among them",
    delivered({ method: "POST" }),
  ],
  "PUSH-DELIV-003": [
    "every delivery is a StreamResponse about the task",
    delivered({
      method: "POST",
      body: {
        all_of: [
          { schema: "StreamResponse" },
          {
            any_of: [
              { task: { id: "{{create.taskId}}" } },
              { statusUpdate: { taskId: "{{create.taskId}}" } },
              { artifactUpdate: { taskId: "{{create.taskId}}" } },
            ],
          },
        ],
      },
    }),
  ],
  "REST-CT-001": [
    "the answer's Content-Type is application/a2a+json",
    expecting({ headers: { "content-type": { matches: "^application/a2a\\+json\\b" } } }),
  ],
  "SEC-AUTH-001": ["a call without credentials gets 401 or 403", unauthorized("none")],
  "SEC-AUTH-002": ["a call by a caller without permissions gets 403", weakCredentials],
  "SEC-AUTH-003": otherOwner,
  "SEC-AUTH-004": [
    "seven operations, each called without credentials and with wrong ones, get 401 or 403",
    (test) => ({
      ...test,
      ...needsCredentials,
      transports: [],
      steps: guarded.flatMap(([operation, params]) =>
        (["none", "invalid"] as const).map((credentials) =>
          call(`${operation}-${credentials}`, operation, params, {
            credentials,
            expectError: { types: [], status: refused },
          }),
        ),
      ),
    }),
  ],
  // Its steps fetch the public card, which needs no credentials.
  "SEC-AUTH-006": [
    "a list without credentials gets 401 and WWW-Authenticate",
    (test) => {
      const expectError = { types: [], status: 401, headers: { "www-authenticate": { exists: true } } };
      return {
        ...test,
        ...needsCredentials,
        steps: [call("list", "list_tasks", {}, { credentials: "none", expectError })],
      };
    },
  ],
  "SEC-EXTCARD-001": ["the extended card without credentials gets 401 or 403", unauthorized("none")],
  "SEC-EXTCARD-002": ["the extended card for a caller without permissions gets 403", weakCredentials],
  "SEC-EXTCARD-004": ["the extended card with wrong credentials gets 401 or 403", unauthorized("invalid")],
  "SEC-PUSH-001": deliveredWithCredentials,
  "SEC-PUSH-002": ["", () => aboutClients],
  "STREAM-MULTI-001": [
    "two streams of one task have the same updates in the same order, until its end",
    (test) => ({
      ...test,
      behaviors: ["tck-long-running"],
      steps: [
        start,
        subscribe("one"),
        subscribe("two"),
        stream("one-ends", "one", { expectStream: toTheEnd }),
        stream("two-ends", "two", { expectStream: { ...toTheEnd, sameUpdatesAs: "one" } }),
      ],
    }),
  ],
  "STREAM-MULTI-002": [
    "a stream continues to the end of the task after another stream of it was closed",
    (test) => ({
      ...test,
      behaviors: ["tck-long-running"],
      steps: [
        start,
        subscribe("one"),
        subscribe("two"),
        stream("one-closes", "one", { disconnect: true }),
        stream("two-ends", "two", { expectStream: toTheEnd }),
      ],
    }),
  ],
  "STREAM-RESUB-001": [
    "a new subscription begins with the task and ends with its terminal state",
    (test) => {
      const id = "{{start.taskId}}";
      const events = [{ anywhere: false, index: 0, assertion: { task: { id } } }];
      const steps = [
        start,
        subscribe("one"),
        stream("one-closes", "one", { disconnect: true }),
        call("again", "subscribe_to_task", { id }, { expectStream: { ...toTheEnd, events } }),
      ];
      return { ...test, steps };
    },
  ],
};

function isSpecial({ id, tags }: Test): boolean {
  return tags.includes("runner-special") || id === "CARD-SCHEMA-001";
}

function checkOf(test: Test): Check | undefined {
  return isSpecial(test) && Object.hasOwn(checks, test.id) ? checks[test.id] : undefined;
}

/** What the runner asks instead of a test's steps; undefined if the steps run as they are. */
export function readingOf(test: Test): string | undefined {
  return checkOf(test)?.[0];
}

/** The test that is run in place of the given one, or why none is. */
export function officialCheck(test: Test, target: Target): Test | Skipped {
  if (!isSpecial(test)) return test;
  if (test.steps.some(({ kind }) => kind === "client")) return aboutClients;
  return checkOf(test)?.[1](test, target) ?? unsaid;
}
