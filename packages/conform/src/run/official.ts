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
 * Some official tests are tagged `runner-special`: every server passes their steps. The test's description says what the runner must
 * check instead.
 */

/** The runner's check for such a test: its text in reports, and a function that returns the test to run. */
type Check = readonly [reading: string, change: (test: Test, target: Target) => Test | Skipped];

const aboutClients: Skipped = { reason: "tests clients, not servers", applies: false };
const unspecified: Skipped = { reason: "leaves its check to the runner, which does not implement it", applies: true };
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

/** Changes the calls and raw requests of a test. */
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
  `${schema === "AgentCard" ? "the public card" : "the response"} is a valid ${schema}: types, required fields, names`,
  expecting({ body: { schema } }),
];

/** Starts a task that takes some seconds. */
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

/** Subscribes twice to a long-running task. */
const twoStreams =
  (...steps: readonly Step[]) =>
  (test: Test): Test => ({
    ...test,
    behaviors: ["tck-long-running"],
    steps: [start, subscribe("one"), subscribe("two"), ...steps],
  });

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
    : { reason: "needs a caller without permission", applies: true, option: "insufficientAuthToken" };

/** A2A 1.0 §3.3.2. */
const otherOwner: Check = [
  "a task of another caller and an unknown task result in the same error",
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
    steps: [...renamed(test.steps), deliveries({ until: lastDelivery, each })],
  });

/** Some official files use the name `create-task` for the step `create`. */
function renamed(steps: readonly Step[]): readonly Step[] {
  return JSON.parse(JSON.stringify(steps).replaceAll("create-task", "create")) as readonly Step[];
}

const deliveredWithCredentials: Check = [
  "every delivery has the credentials of the webhook",
  delivered({ headers: { authorization: "Bearer test-token" } }),
];

/** The operations that the description of SEC-AUTH-004 names. The test's own steps call only one of them. */
const guarded: readonly (readonly [CallStep["operation"], JsonMap])[] = [
  ["send_message", userMessage("tck-complete-task")],
  ["get_task", { id: "{{$uuid}}" }],
  ["list_tasks", {}],
  ["cancel_task", { id: "{{$uuid}}" }],
  ["subscribe_to_task", { id: "{{$uuid}}" }],
  ["list_push_configs", { taskId: "{{$uuid}}" }],
  ["get_extended_agent_card", {}],
];

/** The checks, by test id. */
const checks: Readonly<Record<string, Check>> = {
  "CARD-CACHE-001": [
    "the public card has an ETag, or a Cache-Control with a max-age",
    expecting({ headers: { any_of: [{ "cache-control": { contains: "max-age" } }, { etag: { exists: true } }] } }),
  ],
  "CARD-SCHEMA-001": shaped("AgentCard"),
  // A server may accept or reject a client's contextId (§3.4.1).
  "CORE-CTX-001": [
    "the server accepts or rejects the client's contextId, and does not silently replace it",
    (test) => {
      const own = { contextId: "client-generated-context-that-should-be-rejected" };
      const expect = { error: false, orError: [], body: { any_of: [{ task: own }, { message: own }] } };
      return changed(test, ({ expectError: _, ...step }) => ({ ...step, expect }));
    },
  ],
  "CORE-ERR-009": otherOwner,
  "DM-SERIAL-002": shaped("SendMessageResponse"),
  "PUSH-DELIV-001": deliveredWithCredentials,
  "PUSH-DELIV-002": ["deliveries use POST, and include the final state of the task", delivered({ method: "POST" })],
  "PUSH-DELIV-003": [
    "every delivery is a StreamResponse of the task",
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
    "the Content-Type of the response is application/a2a+json",
    expecting({ headers: { "content-type": { matches: "^application/a2a\\+json\\b" } } }),
  ],
  "SEC-AUTH-001": ["a call without credentials is rejected with 401 or 403", unauthorized("none")],
  "SEC-AUTH-002": ["a call without permission is rejected with 403", weakCredentials],
  "SEC-AUTH-003": otherOwner,
  "SEC-AUTH-004": [
    "seven operations reject calls without credentials, and with invalid ones, with 401 or 403",
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
  // The test's own steps fetch the public card, which requires no credentials.
  "SEC-AUTH-006": [
    "ListTasks without credentials is rejected with 401 and WWW-Authenticate",
    (test) => {
      const expectError = { types: [], status: 401, headers: { "www-authenticate": { exists: true } } };
      return {
        ...test,
        ...needsCredentials,
        steps: [call("list", "list_tasks", {}, { credentials: "none", expectError })],
      };
    },
  ],
  "SEC-EXTCARD-001": ["the extended card requires credentials: 401 or 403", unauthorized("none")],
  "SEC-EXTCARD-002": ["the extended card requires permission: 403", weakCredentials],
  "SEC-EXTCARD-004": ["the extended card rejects invalid credentials with 401 or 403", unauthorized("invalid")],
  "SEC-PUSH-001": deliveredWithCredentials,
  "SEC-PUSH-002": ["", () => aboutClients],
  "STREAM-MULTI-001": [
    "two streams of one task have the same updates in the same order until its end",
    twoStreams(
      stream("one-ends", "one", { expectStream: toTheEnd }),
      stream("two-ends", "two", { expectStream: { ...toTheEnd, sameUpdatesAs: "one" } }),
    ),
  ],
  "STREAM-MULTI-002": [
    "a stream continues to the end of the task after another one is closed",
    twoStreams(
      stream("one-closes", "one", { disconnect: true }),
      stream("two-ends", "two", { expectStream: toTheEnd }),
    ),
  ],
  "STREAM-RESUB-001": [
    "a new subscription starts with the task and ends with its terminal state",
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

function isSpecial({ id, tags }: Pick<Test, "id" | "tags">): boolean {
  return tags.includes("runner-special") || id === "CARD-SCHEMA-001";
}

function checkOf(test: Pick<Test, "id" | "tags">): Check | undefined {
  return isSpecial(test) && Object.hasOwn(checks, test.id) ? checks[test.id] : undefined;
}

/** The runner's check that replaces a test's steps. undefined: the steps run unchanged. */
export function readingOf(test: Pick<Test, "id" | "tags">): string | undefined {
  return checkOf(test)?.[0];
}

/** The test to run instead, or why it is skipped. */
export function officialCheck(test: Test, target: Target): Test | Skipped {
  if (!isSpecial(test)) return test;
  if (test.steps.some(({ kind }) => kind === "client")) return aboutClients;
  return checkOf(test)?.[1](test, target) ?? unspecified;
}
