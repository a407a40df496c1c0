import type { Clock, Ids } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  invalidParams,
  jsonHash,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import type { AppendOutcome, FeatureEffect, FeatureRow, Store, TaskAppend, TaskHead, TaskKey } from "../store/index.ts";
import { acceptConfig, type AcceptedConfig, type AcceptHost, Challenges, type GivenConfig } from "./accept.ts";
import { fetches } from "./request.ts";
import { createSealer, pushKeyring } from "./keys.ts";
import type { PushSettings } from "./port.ts";
import { parkedFeature, pushFeature, type StoredConfig, writeConfig } from "./stored.ts";

/** What the configs of webhooks need of the engine. */
export interface ConfigsHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  append(item: TaskAppend): Promise<AppendOutcome>;
}

/** A config of a task, as it is stored. */
interface Listed {
  readonly id: string;
  readonly stored: StoredConfig;
}

/** The configs of webhooks: rows of the feature `push`, and of `push.parked` where nothing is sent any more (A2A 1.0 §3.1.7 to §3.1.10). */
export class PushConfigs {
  readonly #settings: PushSettings;
  readonly #host: ConfigsHost;
  readonly #accepting: AcceptHost;
  /** Ids of the configs that are being stored for a task, so that calls at the same time do not exceed the limit together. */
  readonly #arriving = new Map<string, readonly string[]>();

  constructor(settings: PushSettings, host: ConfigsHost) {
    this.#settings = settings;
    this.#host = host;
    this.#accepting = {
      settings,
      clock: host.clock,
      ids: host.ids,
      sealer: createSealer(pushKeyring(settings.keys)),
      challenges: new Challenges(fetches(settings, host.clock), settings.concurrency),
    };
  }

  /** Checks a config and seals its secrets. Rejects with `InvalidParams`, which names the fields that are wrong. */
  accept(given: GivenConfig): Promise<AcceptedConfig> {
    return acceptConfig(given, this.#accepting);
  }

  /** What stores the config of a message that makes a task: it gets all events of the task. */
  first(config: AcceptedConfig): FeatureEffect {
    const now = this.#host.clock.now();
    return rowOf(config, { cursor: 0, generation: 0, created: now, nonce: this.#host.ids.next() }, now);
  }

  /**
   * Stores a config with a task that exists: it gets the events after `head`. One with the same id is replaced, and goes on where that
   * one stopped: callers send the same config with each message, also while events wait for a receiver that is down. `append` stores
   * the effects. `field` is named where the task has too many configs.
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
      // Those that came at the same time may be stored by now.
      const ids = new Set([...all.map(({ id }) => id), ...before]);
      if (!ids.has(config.id) && ids.size >= this.#settings.configsPerTask) throw this.#tooMany(field);
      const now = this.#host.clock.now();
      const last = all.at(-1)?.stored.created ?? 0;
      const nonce = this.#host.ids.next();
      // Later than all others, also after the clock was set back.
      const created = Math.max(now, last + 1);
      const begin = { cursor: seq, generation, state, created, nonce };
      const row = rowOf(config, replaced === undefined ? begin : placeOf(replaced, config.url, nonce), now);
      return await append([row, deletion(parkedFeature, config.id)]);
    } finally {
      const left = [...(this.#arriving.get(key) ?? [])];
      left.splice(left.indexOf(config.id), 1);
      if (left.length === 0) this.#arriving.delete(key);
      else this.#arriving.set(key, left);
    }
  }

  #tooMany(field: string): A2AError {
    const most = this.#settings.configsPerTask;
    return invalidParams([{ field, description: `has too many webhooks: ${most} are the most for a task` }]);
  }

  /** CreateTaskPushNotificationConfig (§3.1.7). `head`: of the task, which is the caller's. */
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

  /** GetTaskPushNotificationConfig (§3.1.8). `task`: the key that it has if it is the caller's. */
  async get(task: TaskKey, id: string): Promise<TaskPushNotificationConfig> {
    const found = (await this.#all(task)).find((each) => each.id === id);
    if (found === undefined) throw notFound(task.taskId, "This task has no webhook with this id");
    return shown(task.taskId, id, found.stored);
  }

  /** ListTaskPushNotificationConfigs (§3.1.9), oldest first. Without a `pageSize` all of them. */
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

  /** DeleteTaskPushNotificationConfig (§3.1.10). Where there is no such config, nothing happens. */
  async delete(task: TaskKey, id: string): Promise<void> {
    // The store refuses keys of another size. No config has one.
    const exists = (await this.#all(task)).some((each) => each.id === id);
    if (!exists) return this.#mustExist(task);
    const effects = [deletion(pushFeature, id), deletion(parkedFeature, id)];
    const outcome = await this.#host.append({ task, records: [], effects });
    if (!outcome.ok) throw notFound(task.taskId);
  }

  async #mustExist(task: TaskKey): Promise<void> {
    if ((await this.#host.store.head(task, task.taskId)) === undefined) throw notFound(task.taskId);
  }

  /** All configs of a task in the order of their creation. None where it is somebody else's. */
  async #all(task: TaskKey): Promise<readonly Listed[]> {
    const { store } = this.#host;
    // One after the other: a config that is parked in between is then seen twice, and not missed.
    const active = await store.features(task, task.taskId, pushFeature);
    const parked = await store.features(task, task.taskId, parkedFeature);
    const byId = new Map([...parked, ...active].map((row) => [row.key, listed(row)]));
    return [...byId.values()].sort((one, other) => inOrder(positionOf(one), positionOf(other)));
  }
}

function listed({ key, value }: FeatureRow): Listed {
  return { id: key, stored: JSON.parse(value) as StoredConfig };
}

/** The place of a config among those of its task. */
type Position = readonly [created: number, id: string];

function positionOf({ id, stored }: Listed): Position {
  return [stored.created, id];
}

function inOrder([one, oneId]: Position, [other, otherId]: Position): number {
  return one - other || (oneId < otherId ? -1 : Number(oneId > otherId));
}

/** The row of a config that has delivered nothing. It is due at once: an event may have been stored since the cursor was read. */
function rowOf(
  { id, ...config }: AcceptedConfig,
  at: Pick<StoredConfig, "cursor" | "created" | "nonce"> & Partial<StoredConfig>,
  now: number,
): FeatureEffect {
  const value = writeConfig({ sequence: 0, delivered: 0, ...config, ...at });
  return { effect: "feature", op: "set", feature: pushFeature, key: id, value, due: now };
}

/**
 * Where a config stopped that is replaced: its place in lists and in the log. At the same address the numbers and ids of deliveries go
 * on too, so that the receiver can tell a repetition. `nonce`: of the deliveries to another address.
 */
function placeOf(
  replaced: StoredConfig,
  to: string,
  nonce: string,
): Pick<StoredConfig, "cursor" | "created" | "nonce"> & Partial<StoredConfig> {
  const {
    url,
    version: _v,
    extensions: _x,
    scheme: _c,
    sealed: _e,
    claim: _m,
    holder: _h,
    attempts: _t,
    problem: _p,
    ...place
  } = replaced;
  if (url === to) return place;
  const { sequence: _s, delivered: _d, refused: _r, again: _a, ...log } = place;
  return { ...log, nonce };
}

function deletion(feature: string, key: string): FeatureEffect {
  return { effect: "feature", op: "delete", feature, key };
}

/** What callers see: everything but the secrets. */
function shown(
  taskId: string,
  id: string,
  { url, scheme }: Pick<StoredConfig, "url" | "scheme">,
): TaskPushNotificationConfig {
  return { id, taskId, url, ...(scheme !== undefined && { authentication: { scheme } }) };
}

/** Also for the task of another owner, because for this caller it does not exist. */
function notFound(taskId: string, message?: string): A2AError {
  return new A2AError("TaskNotFound", message, { metadata: { taskId } });
}

/*
 * A page token is a position in the list of one task, with a checksum that tells it from one that this list did not give out. It
 * stays valid when the config at the position is deleted. It is no secret: what a caller may read does not depend on it.
 */

/** The token of the page after a position. */
function tokenAfter([created, id]: Position, task: TaskKey): string {
  return `${checksum(created, id, task)}.${created}.${id}`;
}

/** The position of a token. Throws `InvalidParams`. */
function afterToken(token: string, task: TaskKey): Position {
  const [, sum, time = "", id = ""] = /^([0-9a-f]{16})\.(\d{1,16})\.(.+)$/s.exec(token) ?? [];
  const created = Number(time);
  // The number has one spelling.
  if (sum !== checksum(created, id, task) || String(created) !== time) {
    throw invalidParams([{ field: "pageToken", description: "is not one that this list gave out" }]);
  }
  return [created, id];
}

function checksum(created: number, id: string, { agent, owner, taskId }: TaskKey): string {
  return jsonHash([agent, owner, taskId, created, id]);
}
