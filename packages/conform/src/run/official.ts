import type { CallStep, DeliveriesStep, Json, JsonMap, RawStep, Step, StreamStep, Test } from "../acts/format.ts";
import type { Skipped } from "../report/report.ts";
import type { Target } from "./target.ts";

/**
 * Some tests of the official files are marked `runner-special`: their steps alone pass on any server, and the runner has to make the
 * check that their description asks for. Here is that check for each of them, or the reason why it is not made.
 */

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

const start = (behavior: string): CallStep =>
  call(
    "start",
    "send_message",
    {
      message: { role: "ROLE_USER", parts: [{ text: `${behavior} start` }] },
      configuration: { returnImmediately: true },
    },
    { capture: { taskId: "task.id" } },
  );
const subscribe = (id: string): CallStep => call(id, "subscribe_to_task", { id: "{{start.taskId}}" }, { read: 1 });
const unwatched = { minCount: 2, monotonic: true, events: [] } as const;
const ended: Json = { status: { state: { one_of: ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"] } } };

/** What a delivered task, status or artifact belongs to. */
const ofTask: Json = {
  any_of: [
    { task: { id: "{{create.taskId}}" } },
    { statusUpdate: { taskId: "{{create.taskId}}" } },
    { artifactUpdate: { taskId: "{{create.taskId}}" } },
  ],
};
const lastDelivery: Json = {
  body: {
    any_of: [
      { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } },
      { task: { status: { state: "TASK_STATE_COMPLETED" } } },
    ],
  },
};

/** Each step's expectation, changed. */
function expecting(test: Test, change: (step: CallStep | RawStep) => Step): Test {
  return {
    ...test,
    steps: test.steps.map((step) => (step.kind === "call" || step.kind === "raw" ? change(step) : step)),
  };
}

const refused: Json = { one_of: [401, 403] };
const unauthorized = (credentials: "none" | "invalid") => (test: Test) => ({
  ...expecting(test, ({ expect: _, ...step }) => ({
    ...step,
    credentials,
    expectError: { types: [], status: refused },
  })),
  needs: ["auth_credentials"],
});

const weakCredentials = (test: Test, { variables }: Target): Test | Skipped =>
  Object.hasOwn(variables, "insufficientAuthToken")
    ? expecting(test, ({ expect: _, ...step }) => ({ ...step, expectError: { types: [], status: 403 } }))
    : { reason: "needs a caller without permissions", applies: true, option: "insufficientAuthToken" };

/** A task of somebody else's must look like none (A2A 1.0 §3.3.2): the same code, the same HTTP status. */
const someoneElses = (test: Test): Test => ({
  ...test,
  needs: ["auth_credentials"],
  behaviors: ["tck-complete-task"],
  steps: [
    call(
      "create",
      "send_message",
      { message: { role: "ROLE_USER", parts: [{ text: "tck-complete-task private" }] } },
      { credentials: "other", capture: { taskId: "task.id" } },
    ),
    call("mine", "get_task", { id: "{{create.taskId}}" }, { expectError: { types: ["TaskNotFoundError"] } }),
    call("missing", "get_task", { id: "{{$uuid}}" }, { expectError: { types: ["TaskNotFoundError"] } }),
  ],
});

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

const checks: Readonly<Record<string, (test: Test, target: Target) => Test | Skipped>> = {
  "CARD-CACHE-001": (test) =>
    expecting(test, (step) => ({
      ...step,
      expect: {
        ...(step.expect ?? { error: false }),
        headers: { any_of: [{ "cache-control": { contains: "max-age" } }, { etag: { exists: true } }] },
      },
    })),
  "CARD-SCHEMA-001": (test) => shaped(test, "AgentCard"),
  "DM-SERIAL-002": (test) => shaped(test, "SendMessageResponse"),
  "REST-CT-001": (test) =>
    expecting(test, (step) => ({
      ...step,
      expect: {
        ...(step.expect ?? { error: false }),
        headers: { "content-type": { matches: "^application/a2a\\+json\\b" } },
      },
    })),
  // A server may accept a client's contextId or refuse it. It may not silently use another one (§3.4.1).
  "CORE-CTX-001": (test) =>
    expecting(test, ({ expectError: _, ...step }) => ({
      ...step,
      expect: {
        error: false,
        orError: [],
        body: {
          any_of: ["task", "message"].map((name) => ({
            [name]: { contextId: "client-generated-context-that-should-be-rejected" },
          })),
        },
      },
    })),
  "CORE-ERR-009": someoneElses,
  "SEC-AUTH-003": someoneElses,
  "STREAM-MULTI-001": (test) => ({
    ...test,
    behaviors: ["tck-long-running"],
    steps: [
      start("tck-long-running"),
      subscribe("one"),
      subscribe("two"),
      stream("one-ends", "one", { expectStream: { ...unwatched, finalEvent: ended } }),
      stream("two-ends", "two", { expectStream: { ...unwatched, finalEvent: ended, sameUpdatesAs: "one" } }),
    ],
  }),
  "STREAM-MULTI-002": (test) => ({
    ...test,
    behaviors: ["tck-long-running"],
    steps: [
      start("tck-long-running"),
      subscribe("one"),
      subscribe("two"),
      stream("one-closes", "one", { disconnect: true }),
      stream("two-ends", "two", { expectStream: { ...unwatched, finalEvent: ended } }),
    ],
  }),
  "STREAM-RESUB-001": (test) => ({
    ...test,
    steps: [
      start("tck-long-running"),
      subscribe("one"),
      stream("one-closes", "one", { disconnect: true }),
      call(
        "again",
        "subscribe_to_task",
        { id: "{{start.taskId}}" },
        {
          expectStream: {
            ...unwatched,
            events: [{ anywhere: false, index: 0, assertion: { task: { id: "{{start.taskId}}" } } }],
            finalEvent: ended,
          },
        },
      ),
    ],
  }),
  "PUSH-DELIV-001": delivered({ headers: { authorization: "Bearer test-token" } }),
  "SEC-PUSH-001": delivered({ headers: { authorization: "Bearer test-token" } }),
  "PUSH-DELIV-002": delivered({ method: "POST" }),
  "PUSH-DELIV-003": delivered({ method: "POST", body: { all_of: [{ schema: "StreamResponse" }, ofTask] } }),
  "SEC-PUSH-002": () => aboutClients,
  "SEC-AUTH-001": unauthorized("none"),
  "SEC-AUTH-002": weakCredentials,
  // Its steps call one operation; the requirement is about all of them.
  "SEC-AUTH-004": (test) => ({
    ...test,
    transports: [],
    needs: ["auth_credentials"],
    steps: (
      [
        ["send_message", { message: { role: "ROLE_USER", parts: [{ text: "tck-complete-task" }] } }],
        ["get_task", { id: "{{$uuid}}" }],
        ["list_tasks", {}],
        ["cancel_task", { id: "{{$uuid}}" }],
        ["subscribe_to_task", { id: "{{$uuid}}" }],
        ["list_push_configs", { taskId: "{{$uuid}}" }],
        ["get_extended_agent_card", {}],
      ] as const
    ).flatMap(([operation, params]) =>
      (["none", "invalid"] as const).map((credentials) =>
        call(`${operation}-${credentials}`, operation, params, {
          credentials,
          expectError: { types: [], status: refused },
        }),
      ),
    ),
  }),
  // Its steps fetch the public card, which needs no credentials.
  "SEC-AUTH-006": (test) => ({
    ...test,
    needs: ["auth_credentials"],
    steps: [
      call(
        "list",
        "list_tasks",
        {},
        {
          credentials: "none",
          expectError: { types: [], status: 401, headers: { "www-authenticate": { exists: true } } },
        },
      ),
    ],
  }),
  "SEC-EXTCARD-001": unauthorized("none"),
  "SEC-EXTCARD-002": weakCredentials,
  "SEC-EXTCARD-004": unauthorized("invalid"),
};

function shaped(test: Test, schema: string): Test {
  return expecting(test, (step) => ({
    ...step,
    expect: { ...(step.expect ?? { error: false }), body: { schema } },
  }));
}

/** What each check asks, for the report: the verdict is then the runner's reading, and not that of the test's own steps. */
const readings: Readonly<Record<string, string>> = {
  "CARD-CACHE-001": "the public card comes with an ETag, or a Cache-Control that has a max-age",
  "CARD-SCHEMA-001": "the public card is a valid AgentCard: types, required fields, names",
  "CORE-CTX-001": "a contextId of the client is accepted or refused, and not silently replaced",
  "CORE-ERR-009": "a task of another caller and one that does not exist give the same error",
  "DM-SERIAL-002": "the answer is a valid SendMessageResponse: types, required fields, names",
  "PUSH-DELIV-001": "every delivery carries the credentials that were given with the webhook",
  "PUSH-DELIV-002": "deliveries come by POST, and the last state of the task is among them",
  "PUSH-DELIV-003": "every delivery is a StreamResponse about the task",
  "REST-CT-001": "the answer's Content-Type is application/a2a+json",
  "SEC-AUTH-001": "a call without credentials gets 401 or 403",
  "SEC-AUTH-002": "a call by a caller without permissions gets 403",
  "SEC-AUTH-003": "a task of another caller and one that does not exist give the same error",
  "SEC-AUTH-004": "seven operations, each called without credentials and with wrong ones, get 401 or 403",
  "SEC-AUTH-006": "a list without credentials gets 401 and WWW-Authenticate",
  "SEC-EXTCARD-001": "the extended card without credentials gets 401 or 403",
  "SEC-EXTCARD-002": "the extended card for a caller without permissions gets 403",
  "SEC-EXTCARD-004": "the extended card with wrong credentials gets 401 or 403",
  "SEC-PUSH-001": "every delivery carries the credentials that were given with the webhook",
  "STREAM-MULTI-001": "two streams of one task have the same updates in the same order, until its end",
  "STREAM-MULTI-002": "a stream continues to the end of the task after another stream of it was closed",
  "STREAM-RESUB-001": "a new subscription begins with the task and ends with its terminal state",
};

const special = "runner-special";

/** What the runner asks in place of a test's steps; undefined where the steps are run as they are. */
export function readingOf(test: Test): string | undefined {
  if (!test.tags.includes(special) && test.id !== "CARD-SCHEMA-001") return undefined;
  return Object.hasOwn(readings, test.id) ? readings[test.id] : undefined;
}

/** The test that is run in place of the given one, or why none is. */
export function officialCheck(test: Test, target: Target): Test | Skipped {
  const change = Object.hasOwn(checks, test.id) ? checks[test.id] : undefined;
  if (!test.tags.includes(special) && test.id !== "CARD-SCHEMA-001") return test;
  if (test.steps.some(({ kind }) => kind === "client")) return aboutClients;
  return change === undefined ? unsaid : change(test, target);
}
