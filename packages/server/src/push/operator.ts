import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { auditedSubject, type Audit } from "@parley/a2a/internal/protocol/index";
import { deleteRow, stateOf, type FeatureEffect, type FeatureRow, type Store, type TaskKey } from "../store/index.ts";
import type { PushEntry, PushOperator } from "./port.ts";
import { configJson, parkedFeature, pushFeature, unclaimed, type StoredConfig } from "./stored.ts";
import { defined } from "@parley/a2a/internal/base/defined";

/* Operators' control of webhooks, on the rows of any store, with or without a running server (docs/decisions/webhooks.md). */

type Rows = Pick<Store, "append" | "dueFeatures" | "features" | "head">;

/** A config and its row, as read from the store. */
interface Found {
  readonly feature: typeof pushFeature | typeof parkedFeature;
  readonly row: FeatureRow;
  readonly config: StoredConfig;
}

interface ConfigKey {
  readonly agent: string;
  readonly taskId: string;
  readonly configId: string;
}

/** The features whose rows are configs, in the order in which they are listed. */
const features = [pushFeature, parkedFeature] as const;

/** Maximum entries of a list, because each may take 32 KiB. */
const maxListed = 1000;

/** Maximum attempts if a delivering process keeps changing the same row. */
const maxTries = 50;

/** Options of `pushOperator()`. */
export interface PushOperatorOptions {
  /** Default: the system's clock. */
  readonly clock?: Clock;
  /** Receives each change: `push.retry` and `push.drop`. Default: none. */
  readonly audit?: Audit;
  /** Who the operator is, for the audit. Default: unknown. */
  readonly by?: string;
}

/**
 * Controls the webhooks of a store, of every agent and owner. Only for operators. Servers on the store find the operator's changes
 * within their `pollInterval`.
 */
export function pushOperator(store: Rows, options: PushOperatorOptions = {}): PushOperator {
  const { clock = systemClock, audit, by } = options;
  /** Changes a config, and audits the change. */
  const act = async (action: string, key: ConfigKey, decide: (found: readonly Found[]) => Change): Promise<boolean> => {
    let changed = false;
    try {
      changed = await change(store, key, decide);
      return changed;
    } finally {
      const outcome = changed ? "success" : "failed";
      const principal = by === undefined ? undefined : { subject: by };
      const { agent, taskId } = key;
      // Ignore errors here, because if the store fails now, the change fails, too.
      const head = audit && (await store.head({ agent }, taskId).catch(() => undefined));
      const about = { action, agent, ...auditedSubject({ principal, taskId, contextId: head?.contextId }) };
      audit?.({ event: "administration", outcome, time: clock.now(), ...about });
    }
  };
  return {
    async list({ agent, state, limit = 100 } = {}) {
      if (!Number.isInteger(limit) || limit < 1 || limit > maxListed) {
        throw new A2AError("InvalidParams", `limit must be a whole number from 1 to ${maxListed}`);
      }
      const found: PushEntry[] = [];
      for (const feature of features) {
        const isWanted = state === undefined || (state === "parked") === (feature === parkedFeature);
        const left = limit - found.length;
        if (!isWanted || left === 0) continue;
        const query = { feature, now: Infinity, limit: left, ...(agent !== undefined && { agents: [agent] }) };
        const rows = await store.dueFeatures(query);
        found.push(...rows.map((row) => entryOf(row.task, readRow(feature, row), clock.now())));
      }
      return found;
    },
    async show(agent, taskId) {
      const head = await store.head({ agent }, taskId);
      if (head === undefined) return [];
      const found = await rowsOf(store, head.task);
      return found.map((each) => entryOf(head.task, each, clock.now()));
    },
    retry: (agent, taskId, configId, { seq } = {}) =>
      act("push.retry", { agent, taskId, configId }, (found) => retried(found, seq, clock.now())),
    drop: (agent, taskId, configId, { seq } = {}) =>
      act("push.drop", { agent, taskId, configId }, (found) => dropped(found, seq)),
  };
}

async function rowsOf(store: Rows, { agent, owner, taskId }: TaskKey): Promise<readonly Found[]> {
  const rows = await Promise.all(features.map((feature) => store.features({ agent, owner }, taskId, feature)));
  return features.flatMap((feature, at) => (rows[at] ?? []).map((row) => readRow(feature, row)));
}

function readRow(feature: Found["feature"], row: FeatureRow): Found {
  return { feature, row, config: configJson.read(row.value) };
}

function entryOf(task: TaskKey, found: Found, now: number): PushEntry {
  const { url, version, delivered, cursor, attempts = 0, problem, refused = [] } = found.config;
  const { key: configId, due } = found.row;
  return {
    task,
    configId,
    url: withoutQuery(url),
    version,
    state: stateIn(found, now),
    delivered,
    cursor,
    attempts,
    ...defined({ due, problem }),
    refused,
  };
}

/** Removes query, fragment and user information from a URL, because they may contain secrets. */
function withoutQuery(url: string): string {
  if (!URL.canParse(url)) return "";
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function stateIn(found: Found, now: number): PushEntry["state"] {
  if (found.feature === parkedFeature) return "parked";
  if (found.row.due === undefined) return "idle";
  return isClaimed(found, now) ? "delivering" : "due";
}

/** An expired claim is void, because its process has died or was too slow. */
function isClaimed({ row: { due = -Infinity }, config: { claim } }: Found, now: number): boolean {
  return claim !== undefined && due > now;
}

/** The effects to store; `true`: nothing to change; `false`: no such config or event. */
type Change = readonly FeatureEffect[] | boolean;

/** Applies a change to the rows of a config. A process that delivers may change them at any time. */
async function change(
  store: Rows,
  { agent, taskId, configId }: ConfigKey,
  decide: (found: readonly Found[]) => Change,
): Promise<boolean> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const head = await store.head({ agent }, taskId);
    if (head === undefined) return false;
    const found = await rowsOf(store, head.task);
    const effects = decide(found.filter(({ row }) => row.key === configId));
    if (typeof effects === "boolean") return effects;
    const [outcome] = await store.append([{ task: head.task, records: [], effects }]);
    if (outcome?.ok === true) return true;
    // The task was deleted after its rows were read.
    if (outcome?.reason === "missing") return false;
  }
  throw new A2AError("Unavailable", "Other processes keep changing the webhook; try again");
}

function retried([found]: readonly Found[], seq: number | undefined, now: number): Change {
  if (found === undefined) return false;
  const { feature, row, config } = found;
  const { refused = [], again = [] } = config;
  if (seq !== undefined && !refused.some((each) => each.seq === seq)) return false;
  const wanted = seq === undefined || again.includes(seq) ? config : { ...config, again: [...again, seq] };
  if (feature === parkedFeature) {
    // Start again with the first attempt.
    const { attempts: _, ...fresh } = unclaimed(wanted);
    const removal = { effect: "feature", op: "delete", feature, key: row.key, if: stateOf(row) } as const;
    return [removal, { ...set(row.key, fresh, now), if: null }];
  }
  if (isClaimed(found, now)) return wanted === config ? true : [replace(found, wanted, row.due)];
  // Nothing to change: no delivery is pending, or it is due already.
  if (wanted === config && (row.due === undefined || row.due <= now)) return true;
  return [replace(found, wanted, Math.min(row.due ?? now, now))];
}

function dropped(all: readonly Found[], seq: number | undefined): Change {
  const [found] = all;
  if (found === undefined) return false;
  // No condition, so that the deletion also succeeds during a delivery, which is then the last one.
  if (seq === undefined) {
    return all.map(({ feature, row }) => deleteRow(feature, row.key));
  }
  const { refused = [], again = [], ...config } = found.config;
  const others = refused.filter((each) => each.seq !== seq);
  if (others.length === refused.length) return false;
  const waiting = again.filter((each) => each !== seq);
  const left = {
    ...config,
    ...(others.length > 0 && { refused: others }),
    ...(waiting.length > 0 && { again: waiting }),
  };
  return [replace(found, left, found.row.due)];
}

function set(key: string, config: StoredConfig, due: number | undefined): Extract<FeatureEffect, { op: "set" }> {
  const value = configJson.write(config);
  return { effect: "feature", op: "set", feature: pushFeature, key, value, ...defined({ due }) };
}

/** Sets the row of a config, if it has not changed since it was read. */
function replace({ feature, row }: Found, config: StoredConfig, due: number | undefined): FeatureEffect {
  return { ...set(row.key, config, due), feature, if: stateOf(row) };
}
