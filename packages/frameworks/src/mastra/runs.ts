import type { Mastra } from "@mastra/core";
import type { JsonObject } from "@parley/a2a/model";
import { fromJson, isObject, toJson } from "../shared/json.ts";
import { pack, unpack } from "./packed.ts";

/* Moves suspended runs between Mastra's storage and the state of the task. */

/** A row in Mastra's storage. */
interface Run {
  readonly workflowName: string;
  readonly runId: string;
  readonly snapshot: object | string;
}

/** The members of the workflow storage that the adapter uses. */
interface RunStore {
  loadWorkflowSnapshot(key: { workflowName: string; runId: string }): Promise<object | null>;
  getWorkflowRunById(key: { runId: string }): Promise<Run | null>;
  persistWorkflowSnapshot(run: object): Promise<void>;
  deleteWorkflowRunById(key: { workflowName: string; runId: string }): Promise<void>;
}

/** The workflows of an agent's loop. */
const loops = ["agentic-loop", "executionWorkflow"];

async function storeOf(mastra: Mastra): Promise<RunStore> {
  const store: unknown = await mastra.getStorage()?.getStore("workflows");
  if (store === undefined)
    throw new Error("The storage of this Mastra instance does not support workflows; a run cannot be suspended");
  return store as RunStore;
}

/** Removes a suspended run from the storage, with the runs of agents and workflows that it waits for. */
export async function takeRuns(mastra: Mastra, runId: string): Promise<JsonObject> {
  const store = await storeOf(mastra);
  const runs: Run[] = [];
  const ids = new Set([runId]);
  // The set grows during the iteration.
  for (const id of ids) {
    const found = await runsOf(store, id);
    runs.push(...found);
    for (const [, inner = ""] of JSON.stringify(found).matchAll(/"(?:suspendedToolRunId|delegatedRunId)":"([^"\\]+)"/g))
      ids.add(inner);
  }
  for (const { workflowName, runId } of runs) {
    await store.deleteWorkflowRunById({ workflowName, runId });
    // Otherwise this process would keep the run in order to resume it.
    mastra.__unregisterInternalWorkflow(workflowName, runId);
  }
  return { runs: pack(toJson(runs)) };
}

async function runsOf(store: RunStore, runId: string): Promise<readonly Run[]> {
  const runs: Run[] = [];
  for (const workflowName of loops) {
    const snapshot = await store.loadWorkflowSnapshot({ workflowName, runId });
    if (snapshot !== null) runs.push({ workflowName, runId, snapshot });
  }
  const other = runs.length === 0 ? await store.getWorkflowRunById({ runId }) : null;
  return other === null ? runs : [{ workflowName: other.workflowName, runId, snapshot: other.snapshot }];
}

/** Restores the runs that `takeRuns()` removed. */
export async function putRuns(mastra: Mastra, { runs }: JsonObject): Promise<void> {
  const store = await storeOf(mastra);
  const stored = isObject(runs) ? fromJson(unpack(runs)) : [];
  for (const run of stored as readonly Run[]) await store.persistWorkflowSnapshot(run);
}
