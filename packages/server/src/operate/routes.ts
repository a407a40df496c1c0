import { defined } from "@parley/a2a/internal/base/defined";
import { invalidParams, type TaskState } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { ActContext, ActName, ActResult, Operator, TaskFilter } from "./port.ts";
import { actNames, ref, state, type JsonSchema } from "./schemas.ts";

/* The routes of the operators' API, as a table for the HTTP handler, the OpenAPI document and the tests. */

/** The rules for one input of a request. */
interface Input {
  readonly type: "string" | "integer" | "boolean" | "time" | "states" | "order";
  readonly description: string;
  readonly required?: boolean;
  readonly maximum?: number;
}

type Inputs = Readonly<Record<string, Input>>;
/** The inputs of a request, each checked. */
type Given = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The content of a request, for its authorization. */
export interface OperatorRequest {
  /** The operator. */
  readonly principal: Principal;
  /** An act, or `read`. */
  readonly act: "read" | ActName;
  /** The agent in the request. */
  readonly agent?: string;
  /** The task in the request. */
  readonly taskId?: string;
  /** The node in the request. */
  readonly node?: string;
}

export interface OperatorRoute {
  readonly method: "GET" | "POST";
  /** The path, relative to the path of the API. */
  readonly path: string;
  /** The unique name of the operation, for generated clients. */
  readonly id: string;
  readonly summary: string;
  readonly act: OperatorRequest["act"];
  /** Parameters of the query, or members of the body. */
  readonly inputs: Inputs;
  /** The name of the answer's schema. */
  readonly answer: string;
  /** The description of a 409. Absent: the task has changed, or does not allow the act. */
  readonly conflict?: string;
  /** Executes the operation. `undefined`: the answer is a 404. */
  run(operator: Operator, given: Given, context: ActContext): Promise<object | undefined>;
}

/** Maximum characters of a text, and of a name that is stored with an order or an act. A character takes at most three bytes. */
const [maxText, maxName] = [4_096, 680];
const agent: Input = { type: "string", description: "Agent, by the id of its mount", required: true, maximum: maxName };
const onlyAgent: Input = { type: "string", description: "Only tasks of this agent" };
const taskId: Input = { type: "string", description: "ID of the task", required: true, maximum: maxName };
const node: Input = { type: "string", description: "Name of the node", required: true, maximum: maxName };
const reason: Input = { type: "string", description: "Why, for the audit", maximum: 1_000 };
const seq: Input = {
  type: "integer",
  description:
    "The expected number of the task's last record. If it differs, the act is rejected and the answer has the current task",
};
const onTask: Inputs = { agent, taskId, seq, reason };

const textOf = (given: Given, name: string): string => String(given[name]);

function targetOf(given: Given): { agent: string; taskId: string; seq?: number } {
  const { seq: expected } = given;
  return {
    agent: textOf(given, "agent"),
    taskId: textOf(given, "taskId"),
    ...(typeof expected === "number" && { seq: expected }),
  };
}

function filterOf(given: Given): TaskFilter {
  const { states, order, ...rest } = given;
  // The inputs of this route have the names and types of the filter's members.
  const filter: { -readonly [Name in keyof TaskFilter]: unknown } = { ...rest };
  if (states !== undefined) filter.states = states;
  if (order !== undefined) filter.order = order;
  return filter as TaskFilter;
}

function actRoute(
  act: ActName,
  summary: string,
  answer: string,
  inputs: Inputs,
  run: (operator: Operator, given: Given, context: ActContext) => Promise<ActResult<object>>,
  conflict?: string,
): OperatorRoute {
  const id = act.replaceAll(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
  return { method: "POST", path: `/v1/acts/${act}`, id, summary, act, inputs, answer, run, ...defined({ conflict }) };
}

function reading(
  path: string,
  id: string,
  summary: string,
  answer: string,
  inputs: Inputs,
  run: OperatorRoute["run"],
): OperatorRoute {
  return { method: "GET", path, id, summary, act: "read", inputs, answer, run };
}

export const operatorRoutes: readonly OperatorRoute[] = [
  {
    method: "GET",
    path: "/v1/tasks",
    id: "listTasks",
    summary: "Lists tasks of all owners, newest status first",
    act: "read",
    inputs: {
      agent: onlyAgent,
      taskId: { type: "string", description: "Only the tasks with this ID, whichever agents have them" },
      owner: { type: "string", description: "Only tasks of this owner, by its stored name" },
      states: { type: "states", description: "Only tasks in one of these states, separated by commas" },
      node: { type: "string", description: "Only tasks with a run that this node holds" },
      suspended: { type: "boolean", description: "Only suspended tasks" },
      since: { type: "time", description: "Only tasks whose status is of this time or later" },
      before: { type: "time", description: "Only tasks whose status is older" },
      order: { type: "order", description: "`oldest` or `newest` status first. Default newest" },
      limit: { type: "integer", description: "Maximum tasks of a page. Default 50", maximum: 500 },
      cursor: { type: "string", description: "`next` of the page before, with the same filter" },
    },
    answer: "TaskList",
    run: (operator, given) => operator.list(filterOf(given)),
  },
  reading(
    "/v1/task",
    "showTask",
    "Shows a task: why it waits, its steps, webhooks, newest records and acts",
    "ShownTask",
    { agent, taskId },
    (operator, given) => operator.show(textOf(given, "agent"), textOf(given, "taskId")),
  ),
  {
    method: "GET",
    path: "/v1/log",
    id: "readLog",
    summary: "Reads the log of a task, oldest record first, without its content",
    act: "read",
    inputs: {
      agent,
      taskId,
      after: { type: "integer", description: "Only records with a greater number: `next` of the page before" },
      limit: { type: "integer", description: "Maximum records of a page. Default 1000", maximum: 5_000 },
    },
    answer: "TaskLog",
    run(operator, { after, limit, ...given }) {
      const query = { ...(typeof after === "number" && { after }), ...(typeof limit === "number" && { limit }) };
      return operator.log(textOf(given, "agent"), textOf(given, "taskId"), query);
    },
  },
  {
    method: "GET",
    path: "/v1/why",
    id: "explainTask",
    summary: "Says why a task waits or ended, and which command helps",
    act: "read",
    inputs: { agent, taskId },
    answer: "Why",
    async run(operator, given) {
      const shown = await operator.show(textOf(given, "agent"), textOf(given, "taskId"));
      return shown && { task: shown.task, why: shown.why, waits: shown.waits };
    },
  },
  reading(
    "/v1/counts",
    "countTasks",
    "Counts tasks by agent and state, the queue, and runs",
    "Counts",
    {},
    (operator) => operator.counts(),
  ),
  reading("/v1/nodes", "listNodes", "Lists the nodes, and how many runs each holds", "Nodes", {}, async (operator) => ({
    nodes: await operator.nodes(),
  })),
  reading("/v1/paused", "listPaused", "Lists paused agents", "Paused", {}, async (operator) => ({
    agents: await operator.paused(),
  })),
  {
    method: "GET",
    path: "/v1/acts",
    id: "listActs",
    summary: "Lists the audit of acts, newest first",
    act: "read",
    inputs: {
      limit: { type: "integer", description: "Maximum acts. Default 50", maximum: 500 },
      before: { type: "integer", description: "Only acts with a lower number" },
    },
    answer: "Acts",
    async run(operator, { limit = 50, before }) {
      const page = { limit: Number(limit), ...(before !== undefined && { before: Number(before) }) };
      return { acts: await operator.acts(page) };
    },
  },
  actRoute("cancel", "Cancels a task in any process", "TaskActed", onTask, (operator, given, context) =>
    operator.cancel(targetOf(given), context),
  ),
  actRoute(
    "resume",
    "Resumes a suspended task, or begins a new task that continues a failed one",
    "TaskActed",
    onTask,
    (operator, given, context) => operator.resume(targetOf(given), context),
  ),
  actRoute(
    "retry-step",
    "Forgets the result of a step of a suspended, waiting or failed task, and resumes it",
    "TaskActed",
    { ...onTask, step: { type: "string", description: "Name of the step", required: true } },
    (operator, given, context) => operator.retryStep({ ...targetOf(given), step: textOf(given, "step") }, context),
  ),
  actRoute(
    "drop-wait",
    "Ends a wait for a time or an event as its timeout does",
    "TaskActed",
    { ...onTask, wait: { type: "string", description: "Key of the wait, as `why` shows it", required: true } },
    (operator, given, context) => operator.dropWait({ ...targetOf(given), wait: textOf(given, "wait") }, context),
  ),
  actRoute(
    "pause",
    "Pauses an agent on all nodes: its new turns wait in the queue",
    "AgentPaused",
    { agent, reason },
    (operator, given, context) => operator.pause(textOf(given, "agent"), context),
    "The agent is paused already, or no node serves it and it has no tasks",
  ),
  actRoute(
    "unpause",
    "Ends the pause of an agent",
    "AgentUnpaused",
    { agent, reason },
    (operator, given, context) => operator.unpause(textOf(given, "agent"), context),
    "The agent is not paused",
  ),
  actRoute(
    "drain",
    "Drains a node: it begins no turn, and its probe of readiness fails",
    "NodeActed",
    { node, reason },
    (operator, given, context) => operator.drain(textOf(given, "node"), context),
    "The node is draining already, or the nodes are known and none has this name",
  ),
  actRoute(
    "undrain",
    "Lets a node begin turns again",
    "NodeActed",
    { node, reason },
    (operator, given, context) => operator.undrain(textOf(given, "node"), context),
    "The node is not draining",
  ),
];

const orders: readonly unknown[] = ["oldest", "newest"];

/** The JSON Schema of an input. */
export function schemaOf({ type, maximum }: Input): JsonSchema {
  switch (type) {
    case "string":
      return { type: "string", minLength: 1, maxLength: maximum ?? maxText };
    case "integer":
      return { type: "integer", minimum: 1, maximum: maximum ?? Number.MAX_SAFE_INTEGER };
    case "boolean":
      return { type: "boolean" };
    case "time":
      return { type: "string", format: "date-time" };
    case "order":
      return { type: "string", enum: orders };
    case "states":
      return { type: "array", items: state, minItems: 1 };
  }
}

/** The name of the schema of a rejected act. */
export const refusalOf = (route: OperatorRoute): JsonSchema | undefined =>
  actNames.includes(route.act) ? ref("Refusal") : undefined;

/**
 * The inputs of a request, checked. Inputs of a query are texts.
 *
 * @throws A2AError `InvalidParams` with the names of the invalid inputs.
 */
export function readInputs(route: OperatorRoute, values: ReadonlyMap<string, unknown>): Given {
  const given: Record<string, Given[string]> = {};
  const fields: { field: string; description: string }[] = [];
  for (const name of values.keys()) {
    if (!Object.hasOwn(route.inputs, name)) fields.push({ field: name, description: "is unknown" });
  }
  for (const [name, input] of Object.entries(route.inputs)) {
    const value = values.get(name);
    if (value === undefined) {
      if (input.required === true) fields.push({ field: name, description: "is required" });
      continue;
    }
    const read = route.method === "GET" ? readText(input, value) : readJson(input, value);
    if (typeof read === "object" && "wrong" in read) fields.push({ field: name, description: read.wrong });
    else given[name] = read;
  }
  if (fields.length > 0) throw invalidParams(fields);
  return given;
}

type Read = NonNullable<Given[string]> | { readonly wrong: string };

function readText(input: Input, value: unknown): Read {
  const text = String(value);
  if (input.type === "integer") return /^\d{1,16}$/.test(text) ? readJson(input, Number(text)) : wholeNumber(input);
  if (input.type === "boolean")
    return text === "true" || (text === "false" ? false : { wrong: "must be true or false" });
  if (input.type === "states") return readJson(input, text.split(","));
  return readJson(input, text);
}

function wholeNumber({ maximum = Number.MAX_SAFE_INTEGER }: Input): { readonly wrong: string } {
  return { wrong: `must be a whole number from 1 to ${maximum}` };
}

function readJson(input: Input, value: unknown): Read {
  const { type, maximum } = input;
  if (type === "integer") {
    const isRight = Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= (maximum ?? Infinity);
    return isRight ? Number(value) : wholeNumber(input);
  }
  if (type === "boolean") return typeof value === "boolean" ? value : { wrong: "must be true or false" };
  if (type === "states") {
    const names = state["enum"] as readonly TaskState[];
    const isRight = Array.isArray(value) && value.every((each) => (names as readonly unknown[]).includes(each));
    return isRight ? (value as readonly string[]) : { wrong: `must be states such as ${names[0]}` };
  }
  if (type === "order" && !orders.includes(value)) return { wrong: "must be oldest or newest" };
  if (typeof value !== "string" || value === "") return { wrong: "must be a text" };
  if (value.length > (maximum ?? maxText)) return { wrong: `must have at most ${maximum ?? maxText} characters` };
  if (type !== "time") return value;
  const time = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? { wrong: "must be a time such as 2026-11-28T20:00:00Z" } : time;
}

/** The content of a request with these inputs. */
export function requestOf(route: OperatorRoute, given: Given, principal: Principal): OperatorRequest {
  const named = (name: "agent" | "taskId" | "node") => (typeof given[name] === "string" ? { [name]: given[name] } : {});
  return { principal, act: route.act, ...named("agent"), ...named("taskId"), ...named("node") };
}
