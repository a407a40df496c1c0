import type { Clock, Ids } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  invalidParams,
  jsonHash,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import {
  deleteRow,
  type AppendOutcome,
  type FeatureEffect,
  type Store,
  type TaskAppend,
  type TaskHead,
  type TaskKey,
} from "../store/index.ts";
import { acceptConfig, challenges, type AcceptDeps, type AcceptedConfig, type GivenConfig } from "./accept.ts";
import { createSealer, pushKeyring } from "./keys.ts";
import type { PushSettings } from "./port.ts";
import { fetches } from "./request.ts";
import { configJson, parkedFeature, pushFeature, unclaimed, writeConfig, type StoredConfig } from "./stored.ts";

/** Engine dependencies of the configs. */
export interface ConfigsHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  append(item: TaskAppend): Promise<AppendOutcome>;
}

/** A config of a task, as stored. */
interface Listed {
  readonly id: string;
  readonly stored: StoredConfig;
}

/** The configs of webhooks: rows of the feature `push`, and of `push.parked` (A2A 1.0 §3.1.7 to §3.1.10). */
export class PushConfigs {
  readonly #settings: PushSettings;
  readonly #host: ConfigsHost;
  readonly #accepting: AcceptDeps;
  /** Ids of configs that are being stored, by task. They count toward the limit, so concurrent calls cannot exceed it. */
  readonly #arriving = new Map<string, readonly string[]>();

  constructor(settings: PushSettings, host: ConfigsHost) {
    const { clock, ids } = host;
    this.#settings = settings;
    this.#host = host;
    const sealer = createSealer(pushKeyring(settings.keys));
    const challenge = challenges(fetches(settings, clock), settings.concurrency);
    this.#accepting = { settings, clock, ids, sealer, challenge };
  }

  /** Checks a config and seals its secrets. Rejects with `InvalidParams`, which names the fields. */
  accept(given: GivenConfig): Promise<AcceptedConfig> {
    return acceptConfig(given, this.#accepting);
  }

  /** The effect for the config of a message that creates a task. The config gets all events of the task. */
  first(config: AcceptedConfig): FeatureEffect {
    const now = this.#host.clock.now();
    return rowOf(config, { cursor: 0, generation: 0, created: now, nonce: this.#host.ids.next() }, now);
  }

  /**
   * Stores a config with an existing task. The config gets the events after `head`. If it replaces a config with the same id, it continues at
   * the old position: callers send the same config with each message, and events may still wait for a receiver that is down.
   * `append` stores the effects. `field`: named in the error if the task has too many configs.
   */
  async store<T>(
    config: AcceptedConfig,
    { task, seq, generation, state }: Pick<TaskHead, "task" | "seq" | "generation" | "state">,
    field: string,
    append: (effects: readonly FeatureEffect[]) => Promise<T>,
  ): Promise<T> {
    const key = JSON.stringify([task.agent, task.owner, task.taskId]);
    const before = this.#arriving.get(key) ?? [];
    this.#arriving.set(key, [...before, config.id]);
    try {
      const all = await this.#all(task);
      const replaced = all.find(({ id }) => id === config.id)?.stored;
      // Concurrent calls may have stored configs since `all` was read.
      const ids = new Set([...all.map(({ id }) => id), ...before]);
      if (!ids.has(config.id) && ids.size >= this.#settings.configsPerTask) throw this.#tooMany(field);
      const now = this.#host.clock.now();
      const nonce = this.#host.ids.next();
      // Must be later than for all other configs, even if the clock was set back.
      const created = Math.max(now, (all.at(-1)?.stored.created ?? 0) + 1);
      const begin = { cursor: seq, generation, state, created, nonce };
      const row = rowOf(config, replaced === undefined ? begin : continued(replaced, config.url, nonce), now);
      return await append([row, deleteRow(parkedFeature, config.id)]);
    } finally {
      const left = [...(this.#arriving.get(key) ?? [])];
      left.splice(left.indexOf(config.id), 1);
      if (left.length === 0) this.#arriving.delete(key);
      else this.#arriving.set(key, left);
    }
  }

  #tooMany(field: string): A2AError {
    const description = `has too many webhooks: ${this.#settings.configsPerTask} are the most for a task`;
    return invalidParams([{ field, description }]);
  }

  /** CreateTaskPushNotificationConfig (§3.1.7). `head`: the head of one of the caller's tasks. */
  async create(
    head: TaskHead,
    config: TaskPushNotificationConfig,
    { version, extensions }: Pick<GivenConfig, "version" | "extensions">,
  ): Promise<TaskPushNotificationConfig> {
    const { task } = head;
    const accepted = await this.accept({ config, task, version, extensions, path: "" });
    const outcome = await this.store(accepted, head, "taskId", (effects) =>
      this.#host.append({ task, records: [], effects }),
    );
    if (!outcome.ok) throw outcome.reason === "full" ? this.#tooMany("taskId") : notFound(task.taskId);
    return shown(task.taskId, accepted.id, accepted);
  }

  /** GetTaskPushNotificationConfig (§3.1.8). `task`: its key, with the caller as the owner. */
  async get(task: TaskKey, id: string): Promise<TaskPushNotificationConfig> {
    const found = (await this.#all(task)).find((each) => each.id === id);
    if (found === undefined) throw notFound(task.taskId, "This task has no webhook with this id");
    return shown(task.taskId, id, found.stored);
  }

  /** ListTaskPushNotificationConfigs (§3.1.9), oldest first. Without a `pageSize`, all. */
  async list(
    task: TaskKey,
    { pageSize = 0, pageToken = "" }: ListTaskPushNotificationConfigsRequest,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    const all = await this.#all(task);
    if (all.length === 0) await this.#mustExist(task);
    const after = pageToken === "" ? undefined : afterToken(pageToken, task);
    const rest = after === undefined ? all : all.filter((each) => inOrder(positionOf(each), after) > 0);
    const page = pageSize === 0 ? rest : rest.slice(0, pageSize);
    const last = page.length < rest.length ? page.at(-1) : undefined;
    return {
      configs: page.map(({ id, stored }) => shown(task.taskId, id, stored)),
      nextPageToken: last === undefined ? "" : tokenAfter(positionOf(last), task),
    };
  }

  /** DeleteTaskPushNotificationConfig (§3.1.10). Does nothing if there is no such config. */
  async delete(task: TaskKey, id: string): Promise<void> {
    // The store rejects ids that are too long for a key.
    const exists = (await this.#all(task)).some((each) => each.id === id);
    if (!exists) return this.#mustExist(task);
    const effects = [deleteRow(pushFeature, id), deleteRow(parkedFeature, id)];
    const outcome = await this.#host.append({ task, records: [], effects });
    if (!outcome.ok) throw notFound(task.taskId);
  }

  async #mustExist(task: TaskKey): Promise<void> {
    if ((await this.#host.store.head(task, task.taskId)) === undefined) throw notFound(task.taskId);
  }

  /** All configs of a task, by creation. Empty for the task of another owner. */
  async #all(task: TaskKey): Promise<readonly Listed[]> {
    const { store } = this.#host;
    // Not concurrently: if a config is parked between these reads, it is read twice instead of missed.
    const active = await store.features(task, task.taskId, pushFeature);
    const parked = await store.features(task, task.taskId, parkedFeature);
    const byId = new Map([...parked, ...active].map(({ key, value }) => [key, configJson.read(value)]));
    const all = Array.from(byId, ([id, stored]) => ({ id, stored }));
    return all.sort((one, other) => inOrder(positionOf(one), positionOf(other)));
  }
}

/** The row of a config. It is due immediately, because an event may have been stored since the cursor was read. */
function rowOf(
  { id, ...config }: AcceptedConfig,
  at: Pick<StoredConfig, "cursor" | "created" | "nonce"> & Partial<StoredConfig>,
  now: number,
): FeatureEffect {
  const value = writeConfig({ sequence: 0, delivered: 0, ...config, ...at });
  return { effect: "feature", op: "set", feature: pushFeature, key: id, value, due: now };
}

/**
 * The values that a new config takes from the config that it replaces: its positions in lists and in the log. If the URL is the
 * same, delivery numbers and ids continue, so the receiver can deduplicate. `nonce`: used for a new URL.
 */
function continued(replaced: StoredConfig, to: string, nonce: string) {
  const { attempts: _a, problem: _p, ...kept } = unclaimed(replaced);
  const { url, version: _v, extensions: _x, scheme: _c, sealed: _e, ...position } = kept;
  if (url === to) return position;
  const { sequence: _s, delivered: _d, refused: _r, again: _g, ...inLog } = position;
  return { ...inLog, nonce };
}

/** The config as callers see it: without its secrets. */
function shown(
  taskId: string,
  id: string,
  { url, scheme }: Pick<StoredConfig, "url" | "scheme">,
): TaskPushNotificationConfig {
  return { id, taskId, url, ...(scheme !== undefined && { authentication: { scheme } }) };
}

/** Also used for the task of another owner, which does not exist for this caller. */
function notFound(taskId: string, message?: string): A2AError {
  return new A2AError("TaskNotFound", message, { metadata: { taskId } });
}

/** The position of a config among its task's configs. */
type Position = readonly [created: number, id: string];

function positionOf({ id, stored }: Listed): Position {
  return [stored.created, id];
}

function inOrder([one, oneId]: Position, [other, otherId]: Position): number {
  return one - other || (oneId < otherId ? -1 : Number(oneId > otherId));
}

/*
 * A page token is a position with a checksum, which rejects tokens that this list did not issue. It survives the deletion of the config at
 * its position. It is not a secret, because it gives no access.
 */

function tokenAfter([created, id]: Position, task: TaskKey): string {
  return `${checksum(created, id, task)}.${created}.${id}`;
}

/** Reads a page token. Throws `InvalidParams`. */
function afterToken(token: string, task: TaskKey): Position {
  const [, sum, time = "", id = ""] = /^([0-9a-f]{16})\.(\d{1,16})\.(.+)$/s.exec(token) ?? [];
  const created = Number(time);
  // Reject other spellings of the same number, such as with leading zeros.
  if (sum !== checksum(created, id, task) || String(created) !== time) {
    throw invalidParams([{ field: "pageToken", description: "was not issued by this list" }]);
  }
  return [created, id];
}

function checksum(created: number, id: string, { agent, owner, taskId }: TaskKey): string {
  return jsonHash([agent, owner, taskId, created, id]);
}
