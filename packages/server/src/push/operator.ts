import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { auditedSubject, type Audit } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, FeatureRow, Store, TaskKey } from "../store/index.ts";
import type { PushEntry, PushOperator } from "./port.ts";
import { parkedFeature, pushFeature, type StoredConfig } from "./stored.ts";

/* What an operator can see and do, on the rows of any store, whether or not a server runs on it (docs/decisions/webhooks.md). */

/** What the operator uses of a store. */
type Rows = Pick<Store, "append" | "dueFeatures" | "features" | "head">;

/** The row of a config, as it was read. */
interface Found {
  readonly feature: typeof pushFeature | typeof parkedFeature;
  readonly row: FeatureRow;
  readonly config: StoredConfig;
}

/** Most entries of a list: each may take 32 KiB. */
const maxListed = 1000;

/** How often a change is repeated where a process that delivers changes the same row in between. */
const maxTries = 50;

/** Options of `pushOperator()`. */
export interface PushOperatorOptions {
  /** Default: the system's clock. */
  readonly clock?: Clock;
  /** Is told of each change: `push.retry` and `push.drop`. Default: nobody is. */
  readonly audit?: Audit;
  /** Who the operator is, for the audit. Default: it is not known. */
  readonly by?: string;
}

/**
 * The webhooks of a store. It sees and changes those of every agent and owner, so it is for operators alone. What it changes, the
 * servers on the store find when they look for rows that are due, within their `pollInterval`.
 */
export function pushOperator(store: Rows, options: PushOperatorOptions = {}): PushOperator {
  const { clock = systemClock, audit, by } = options;
  /** Changes a config, and records it. */
  const act = async (action: string, key: ConfigKey, decide: (found: readonly Found[]) => Change): Promise<boolean> => {
    let changed = false;
    try {
      changed = await change(store, key, decide);
      return changed;
    } finally {
      const outcome = changed ? "success" : "failed";
      const principal = by === undefined ? undefined : { subject: by };
      const { agent, taskId } = key;
      // A store that fails now has failed the change, too.
      const head = audit && (await store.head({ agent }, taskId).catch(() => undefined));
      const about = { action, agent, ...auditedSubject({ principal, taskId, contextId: head?.contextId }) };
      audit?.({ event: "administration", outcome, time: clock.now(), ...about });
    }
  };
  return {
    async list({ agent, state, limit = 100 } = {}) {
      checkLimit(limit);
      const found: PushEntry[] = [];
      const wanted = features.filter(
        (feature) => state === undefined || (state === "parked") === (feature === parkedFeature),
      );
      for (const feature of wanted) {
        const of = {
          feature,
          now: Infinity,
          limit: limit - found.length,
          ...(agent !== undefined && { agents: [agent] }),
        };
        const rows = of.limit === 0 ? [] : await store.dueFeatures(of);
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

/** In the order of a list. */
const features = [pushFeature, parkedFeature] as const;

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxListed) return;
  throw new A2AError("InvalidParams", `The limit of a list of webhooks is a whole number from 1 to ${maxListed}`);
}

async function rowsOf(store: Rows, { agent, owner, taskId }: TaskKey): Promise<readonly Found[]> {
  const rows = await Promise.all(features.map((feature) => store.features({ agent, owner }, taskId, feature)));
  return features.flatMap((feature, at) => (rows[at] ?? []).map((row) => readRow(feature, row)));
}

function readRow(feature: Found["feature"], row: FeatureRow): Found {
  return { feature, row, config: JSON.parse(row.value) as StoredConfig };
}

function entryOf(task: TaskKey, { feature, row, config }: Found, now: number): PushEntry {
  const { url, version, delivered, cursor, attempts = 0, problem, refused = [] } = config;
  const { key: configId, due } = row;
  return {
    task,
    configId,
    url: withoutQuery(url),
    version,
    state:
      feature === parkedFeature
        ? "parked"
        : due === undefined
          ? "idle"
          : isClaimed(row, config, now)
            ? "delivering"
            : "due",
    delivered,
    cursor,
    attempts,
    ...(due !== undefined && { due }),
    ...(problem !== undefined && { problem }),
    refused,
  };
}

/** Query, fragment and user information may hold secrets. */
function withoutQuery(url: string): string {
  if (!URL.canParse(url)) return "";
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** A claim whose time is over is nobody's any more: its process has died, or was too slow. */
function isClaimed({ due = -Infinity }: FeatureRow, { claim }: StoredConfig, now: number): boolean {
  return claim !== undefined && due > now;
}

/** What to store, `true` where everything is as it was asked for, `false` where there is no such thing. */
type Change = readonly FeatureEffect[] | boolean;

interface ConfigKey {
  readonly agent: string;
  readonly taskId: string;
  readonly configId: string;
}

/** Applies a change to the rows of a config as they are now. A process that delivers may change them at any time. */
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
    // The task was deleted in between.
    if (outcome?.reason === "missing") return false;
  }
  throw new A2AError("Unavailable", "The webhook is being changed by other processes all the time");
}

function retried([found]: readonly Found[], seq: number | undefined, now: number): Change {
  if (found === undefined) return false;
  const { feature, row, config } = found;
  const { refused = [], again = [] } = config;
  if (seq !== undefined && !refused.some((each) => each.seq === seq)) return false;
  const wanted = seq === undefined || again.includes(seq) ? config : { ...config, again: [...again, seq] };
  if (feature === parkedFeature) {
    // All attempts begin anew. A claim, which no parked config has, would be that of nobody.
    const { attempts: _, claim: __, holder: ___, ...fresh } = wanted;
    return [remove(found), { ...set(row.key, fresh, now), if: null }];
  }
  if (isClaimed(row, config, now)) return wanted === config ? true : [replace(found, wanted, row.due)];
  // Nothing waits, or it is due already.
  if (wanted === config && (row.due === undefined || row.due <= now)) return true;
  return [replace(found, wanted, Math.min(row.due ?? now, now))];
}

function dropped(all: readonly Found[], seq: number | undefined): Change {
  const [found] = all;
  if (found === undefined) return false;
  // Without a condition: what a process is delivering just now is the last of it.
  if (seq === undefined)
    return all.map(({ feature, row: { key } }) => ({ effect: "feature", op: "delete", feature, key }));
  const { refused = [], again, ...config } = found.config;
  const others = refused.filter((each) => each.seq !== seq);
  if (others.length === refused.length) return false;
  const waiting = again?.filter((each) => each !== seq) ?? [];
  const left = {
    ...config,
    ...(others.length > 0 && { refused: others }),
    ...(waiting.length > 0 && { again: waiting }),
  };
  return [replace(found, left, found.row.due)];
}

function set(key: string, config: StoredConfig, due: number | undefined): Extract<FeatureEffect, { op: "set" }> {
  const value = JSON.stringify(config);
  return { effect: "feature", op: "set", feature: pushFeature, key, value, ...(due !== undefined && { due }) };
}

/** Sets the row of a config, if it is what was read. */
function replace({ feature, row }: Found, config: StoredConfig, due: number | undefined): FeatureEffect {
  return { ...set(row.key, config, due), feature, if: stateOf(row) };
}

function remove({ feature, row }: Found): FeatureEffect {
  return { effect: "feature", op: "delete", feature, key: row.key, if: stateOf(row) };
}

function stateOf({ value, due }: FeatureRow): { readonly value: string; readonly due?: number } {
  return { value, ...(due !== undefined && { due }) };
}
