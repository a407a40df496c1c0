import type { Mastra } from "@mastra/core";
import type { JsonObject } from "@parley/a2a/model";
import { fromJson, isObject, toJson } from "../shared/json.ts";
import { pack, unpack } from "./packed.ts";

/* The suspended runs of an agent: Mastra keeps them in its storage, Parley in the state of the task. */

/** A row of Mastra's storage. */
interface Run {
  readonly workflowName: string;
  readonly runId: string;
  readonly snapshot: object | string;
}

/** What the adapter uses of the storage for workflows. */
interface RunStore {
  loadWorkflowSnapshot(key: { workflowName: string; runId: string }): Promise<object | null>;
  getWorkflowRunById(key: { runId: string }): Promise<Run | null>;
  persistWorkflowSnapshot(run: object): Promise<void>;
  deleteWorkflowRunById(key: { workflowName: string; runId: string }): Promise<void>;
}

/** The workflows of the loop of an agent. */
const loops = ["agentic-loop", "executionWorkflow"];

async function storeOf(mastra: Mastra): Promise<RunStore> {
  const store: unknown = await mastra.getStorage()?.getStore("workflows");
  if (store === undefined)
    throw new Error("The storage of this Mastra instance has no workflows; a run cannot be suspended");
  return store as RunStore;
}

/** Takes a suspended run out of the storage, with the runs of agents and workflows that it waits for. */
export async function takeRuns(mastra: Mastra, runId: string): Promise<JsonObject> {
  const store = await storeOf(mastra);
  const runs: Run[] = [];
  const ids = new Set([runId]);
  // The set grows while it is read.
  for (const id of ids) {
    const found = await runsOf(store, id);
    runs.push(...found);
    for (const [, inner = ""] of JSON.stringify(found).matchAll(/"(?:suspendedToolRunId|delegatedRunId)":"([^"\\]+)"/g))
      ids.add(inner);
  }
  for (const { workflowName, runId } of runs) {
    await store.deleteWorkflowRunById({ workflowName, runId });
    // Otherwise it is kept for a resumption by this process.
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

/** Puts what `takeRuns()` has taken back. */
export async function putRuns(mastra: Mastra, { runs }: JsonObject): Promise<void> {
  const store = await storeOf(mastra);
  const stored = isObject(runs) ? fromJson(unpack(runs)) : [];
  for (const run of stored as readonly Run[]) await store.persistWorkflowSnapshot(run);
}
