import { isTerminal, textOf, type Artifact, type Task } from "@parley/a2a/model";
import type { LogRecord } from "@parley/a2a/internal/model/index";
import type { Rule, TaskHistory } from "./check.ts";
import { foldOf } from "./fold.ts";
import type { Stored } from "./history.ts";
import { artifactOf, chunkOf, type Order } from "./orders.ts";

/* Rules about tasks: the logs, messages, ends, fences, and content. */

/** A log has no gap, starts with the task, can be folded, and has no record after the end of the task. */
export const logRule: Rule = ({ log }) => {
  if (log === undefined) return ["The task is not in the store"];
  const { records } = log;
  const wrong = records.findIndex(({ seq }, at) => seq !== at + 1);
  if (wrong >= 0) return [`Record ${wrong + 1} has the number ${records[wrong]?.seq}`];
  if (records[0]?.kind !== "task") return [`The first record is ${records[0]?.kind ?? "missing"}`];
  const end = records.findIndex(({ state }) => state !== undefined && isTerminal(state));
  if (end >= 0 && end < records.length - 1) return [`${records.length - 1 - end} records follow the end`];
  const { problem } = foldOf(records);
  return problem === undefined ? [] : [`The log cannot be folded: ${problem}`];
};

/** Each acknowledged message is one record, and the records have the order of the acknowledgements. */
export const messageRule: Rule = ({ entries, log }) => {
  const ids = (log?.records ?? []).flatMap(messagesIn);
  const problems: string[] = [];
  const acked = entries.flatMap((entry) => (entry.type === "acked" ? [entry.messageId] : []));
  for (const id of acked) {
    const times = ids.filter((each) => each === id).length;
    if (times !== 1) problems.push(`Message ${id} is there ${times} times`);
  }
  if (new Set(ids).size !== ids.length) problems.push(`A message is there twice: ${ids.join(", ")}`);
  const places = acked.map((id) => ids.indexOf(id));
  if (places.some((place, at) => at > 0 && place < (places[at - 1] ?? 0))) problems.push("Messages are out of order");
  return problems;
};

function messagesIn({ kind, json, actor }: LogRecord): readonly string[] {
  if (actor !== "user") return [];
  if (kind === "message") return [(JSON.parse(json) as { readonly messageId: string }).messageId];
  return kind === "task" ? ((JSON.parse(json) as Task).history ?? []).map(({ messageId }) => messageId) : [];
}

/** When all conversations have ended, each task has ended, and no process holds it. */
export const endRule: Rule = ({ log }) => {
  const state = log?.records.findLast((record) => record.state !== undefined)?.state;
  if (state === undefined || !isTerminal(state)) return [`Its last state is ${state ?? "unknown"}`];
  return log?.isHeld === true ? ["It has ended, and still has a run or a holder"] : [];
};

/**
 * In log order, fences and a turn's attempts never decrease, and each fence belongs to one process. So all records of a run
 * precede the records of the next run.
 */
export const fenceRule: Rule = ({ entries, log }) => {
  const problems: string[] = [];
  const stored = entries.filter((entry): entry is Stored => entry.type === "stored").toSorted((a, b) => a.seq - b.seq);
  const holders = new Map<number, string>();
  for (const [at, { fence, node, seq }] of stored.entries()) {
    const before = stored[at - 1];
    if (before !== undefined && fence < before.fence)
      problems.push(
        `${node} stored record ${seq} under fence ${fence}, after ${before.node} had stored under ${before.fence}`,
      );
    const holder = holders.get(fence);
    if (holder === undefined) holders.set(fence, node);
    else if (holder !== node) problems.push(`${holder} and ${node} both stored under fence ${fence}`);
  }
  let last: LogRecord | undefined;
  for (const record of log?.records ?? []) {
    if (record.actor !== "agent") continue;
    if (last !== undefined && (record.turn < last.turn || (record.turn === last.turn && record.attempt < last.attempt)))
      problems.push(
        `Record ${record.seq} is of turn ${record.turn}, attempt ${record.attempt}, after ${last.turn}, ${last.attempt}`,
      );
    last = record;
  }
  return problems;
};

/** The final texts of a task whose agent is not resumable, and whose node was killed, or was stopped after its grace period. */
const interrupted: readonly (string | undefined)[] = [
  "The server was interrupted while it worked on this task, and the agent cannot resume it.",
  "The server was stopped while it worked on this task.",
];

/** A completed task has all artifacts that the agent makes from its orders. Any other task has a prefix of these artifacts. */
export const contentRule: Rule = ({ log, orders }) => {
  if (log === undefined) return [];
  const { task } = foldOf(log.records);
  if (task === undefined) return [];
  const { state, message } = task.status;
  const isWhole = state === "TASK_STATE_COMPLETED";
  const problems: string[] = [];
  if (state === "TASK_STATE_FAILED") {
    const said = message?.parts[0]?.text;
    if (log.isResumable || !interrupted.includes(said)) problems.push(`It failed: ${said ?? ""}`);
  }
  const made = new Map((task.artifacts ?? []).map((artifact) => [artifact.artifactId, artifact]));
  if (made.size !== (task.artifacts ?? []).length) problems.push("An artifact is there twice");
  for (const order of orders) problems.push(...storyProblems(order, made.get(artifactOf(order)), isWhole));
  return problems;
};

function storyProblems(order: Order, artifact: Artifact | undefined, isWhole: boolean): readonly string[] {
  const chunks = order.what === "note" ? 1 : order.chunks;
  const expected = Array.from({ length: chunks }, (_, at) => chunkOf(order, at + 1));
  if (artifact === undefined) return isWhole ? [`Artifact ${artifactOf(order)} is missing`] : [];
  const told = artifact.parts.flatMap(({ text }) => text ?? []);
  const due = isWhole ? expected : expected.slice(0, told.length);
  if (told.join("|") !== due.join("|")) return [`${artifactOf(order)} is ${textOf(artifact)}`];
  return [];
}

/** Returns the results of steps in a task's events, by key. */
export function resultsIn({ log }: TaskHistory): readonly StepResult[] {
  if (log === undefined) return [];
  const { task } = foldOf(log.records);
  const parts = (task?.artifacts ?? []).flatMap((artifact) => artifact.parts);
  return parts.flatMap(({ data }) => (data === undefined ? [] : [data as unknown as StepResult]));
}

/** The result of a step. */
export interface StepResult {
  readonly key: string;
  readonly call: number;
  readonly attempt: number;
}
