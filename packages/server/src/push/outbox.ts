import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { defer } from "@parley/a2a/internal/base/index";
import { ByteBudget, taskFields } from "@parley/a2a/internal/protocol/index";
import { byVersion } from "@parley/a2a/internal/wire/codec";
import type { DueFeature, TaskAppend, TaskKey } from "../store/index.ts";
import { Origins, type Origin, type Running } from "./circuit.ts";
import { claimMargin, Delivery, type DeliveryContext } from "./delivery.ts";
import { createSealer, createSigner, pushKeyring } from "./keys.ts";
import type { OpenSecrets, Outbox, OutboxHost, PushSettings, PushSigner } from "./port.ts";
import { Receivers } from "./receivers.ts";
import { fetches, longestWait, originOf, type WebhookCodec } from "./request.ts";
import { dueAt, Rescue } from "./rescue.ts";
import { pushFeature, readConfig, type StoredConfig } from "./stored.ts";

/** How many rows a poll reads in addition to the rows that this process already holds. */
const pageSize = 64;
/** Memory for the names of tasks that are known to have configs, in bytes. Events of other tasks wait for the next poll. */
const knownBytes = 4 << 20;
/** How long to defer a row that no process of this version can read, in milliseconds. */
const unreadablePause = 60 * 60_000;

/** The keys and codecs of the outbox. */
export interface OutboxDeps {
  /** The versions that configs may have. The first is the fallback for an unknown version. */
  readonly codecs: readonly [WebhookCodec, ...WebhookCodec[]];
  readonly open: OpenSecrets;
  readonly signer: PushSigner;
}

/** The outbox of a server, with the keys of its settings. */
export function openOutbox(settings: PushSettings, codecs: OutboxDeps["codecs"], host: OutboxHost): Outbox {
  const keyring = pushKeyring(settings.keys);
  const { open } = createSealer(keyring);
  return new Worker(host, settings, { codecs, open, signer: createSigner(keyring, settings.issuer) });
}

/** Polls for due rows, and delivers them in turns. */
export class Worker implements Outbox {
  readonly #host: OutboxHost;
  readonly #context: DeliveryContext;
  readonly #origins: Origins<Delivery>;
  readonly #receivers: Receivers<Delivery>;
  readonly #held = new HeldRows();
  readonly #known = new BoundedMap<true>({ bytes: knownBytes, bytesOf: (key) => memoryOf(key) });
  #knowsAny = false;
  readonly #rescue: Rescue;
  readonly #running = new Set<Promise<void>>();
  #started = false;
  #stopping = false;
  #polling = false;
  #pollAgain = false;
  #pollDue = false;
  /** Whether the last poll found more rows than this process may hold. */
  #isFull = false;
  /** When the first deferred row is due, on the monotonic clock. */
  #soonest = Infinity;
  #clearTimer: () => void = () => {};

  constructor(host: OutboxHost, settings: PushSettings, { codecs, open, signer }: OutboxDeps) {
    const { store, clock, mergeTextParts } = host;
    const { events: policy, bodyBytes, concurrency, concurrencyPerOrigin, retryAfter, timeout } = settings;
    const versions = byVersion(codecs);
    const claimMs = timeout + claimMargin;
    const deferralMs = Math.max(longestWait(retryAfter), unreadablePause, claimMs);
    const stopping = (): boolean => this.#stopping;
    this.#host = host;
    this.#origins = new Origins(clock, concurrency, concurrencyPerOrigin);
    this.#receivers = new Receivers(host, this.#origins);
    this.#rescue = new Rescue(host, { claimMs, deferralMs }, stopping);
    this.#context = {
      ...host,
      fetchFor: fetches(settings, clock),
      requests: new Set(),
      events: { store, policy, bodyBytes, mergeTextParts },
      budget: new ByteBudget(concurrency * bodyBytes, clock, "No memory for the events of this task now"),
      open,
      signer,
      codecOf: (version) => versions.get(version) ?? codecs[0],
      waits: retryAfter,
      timeout,
      stopping,
    };
  }

  start(): void {
    this.#started = true;
    this.poll();
  }

  reclaim(): void {
    this.#rescue.expectLost();
    this.poll();
  }

  get isBusy(): boolean {
    return this.#pollDue || this.#polling || this.#running.size > 0 || this.#held.size > 0 || this.#receivers.hasNews;
  }

  async stop(grace: number): Promise<void> {
    this.#stopping = true;
    this.#clearTimer();
    const waiting = this.#origins.takeAll().map((delivery) => this.#release(delivery, 0));
    const abort = (): void => this.#context.requests.forEach((request) => request.abort());
    const late = this.#host.clock.after(grace, abort);
    if (grace === 0) abort();
    await Promise.all([...waiting, ...this.#running]);
    late();
    await this.#receivers.tell();
  }

  stored({ task, records, effects = [] }: TaskAppend): void {
    if (
      effects.some((effect) => effect.effect === "feature" && effect.op === "set" && effect.feature === pushFeature)
    ) {
      this.#note(task);
    }
    if (records.length > 0 && this.#knowsAny && this.#known.get(nameOf(task)) === true) this.poll();
  }

  #note(task: TaskKey): void {
    this.#knowsAny = true;
    this.#known.set(nameOf(task), true);
  }

  /** Polls soon. Events that are stored together cause one poll. */
  poll(): void {
    if (!this.#started || this.#stopping || this.#pollDue) return;
    this.#pollDue = true;
    defer(() => {
      this.#pollDue = false;
      if (this.#polling) this.#pollAgain = true;
      else this.#track(this.#poll());
    });
  }

  /** Makes `stop` wait for this work. */
  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  async #poll(): Promise<void> {
    this.#polling = true;
    this.#clearTimer();
    if (this.#soonest <= this.#host.clock.elapsed()) this.#soonest = Infinity;
    try {
      const more = await this.#rescue.poll();
      do {
        this.#pollAgain = false;
        await this.#page();
      } while (this.#pollAgain && !this.#stopping);
      // Rows that are due already are delivered first.
      if (more) this.poll();
    } catch (cause) {
      if (!this.#stopping) this.#host.logger.error("Webhook poll failed; retrying", { cause });
    }
    this.#polling = false;
    const { clock, pollInterval } = this.#host;
    const wait = Math.max(1, Math.min(pollInterval, this.#soonest - clock.elapsed()));
    if (!this.#stopping) this.#clearTimer = clock.after(wait, () => this.poll());
  }

  /** Takes due rows. If this process holds enough rows of an origin, defers further ones, so that they do not hide rows of other origins. */
  async #page(): Promise<void> {
    const { store, agents, clock, append } = this.#host;
    const limit = this.#held.size + pageSize;
    const rows = await store.dueFeatures({ feature: pushFeature, agents, now: clock.now(), limit });
    const found = rows
      .filter((row) => !this.#held.has(keyOf(row)))
      .map((row) => ({ row, config: readConfig(row.value) }));
    await this.#receivers.ask(found.flatMap(({ config }) => (config === undefined ? [] : [originOf(config.url)])));
    this.#isFull = false;
    this.#origins.beginPoll();
    this.#held.beginPoll();
    const deferrals: Promise<unknown>[] = [];
    let taken = 0;
    for (const { row, config } of found) {
      if (this.#stopping) continue;
      const wait = this.#take(row, config, deferrals.length);
      if (wait === "full") this.#isFull = true;
      else if (wait === undefined) taken += 1;
      else {
        this.#soonest = Math.min(this.#soonest, clock.elapsed() + wait);
        deferrals.push(append(dueAt(row, clock.now() + wait)));
      }
    }
    this.#dispatch();
    await Promise.all(deferrals);
    if (rows.length === limit && taken + deferrals.length > 0 && !this.#isFull) this.#pollAgain = true;
  }

  /**
   * Takes a row, which then waits for its turn in this process. If it cannot, returns how long to defer the row, in milliseconds. `deferred`: how
   * many rows this poll has deferred.
   */
  #take(row: DueFeature, config: StoredConfig | undefined, deferred: number): number | "full" | undefined {
    if (config === undefined) {
      void this.#logUnreadable(row);
      return unreadablePause;
    }
    const delivery = new Delivery(this.#context, row, config);
    const origin = this.#origins.of(originOf(config.url));
    const wait = origin.deferralMs(this.#host.clock.elapsed(), Math.random());
    if (wait !== undefined) return wait;
    const held = this.#held.add(keyOf(row), { delivery, origin });
    if (held === "later") return this.#origins.turnAfter(this.#held.untrusted + deferred);
    if (held === "full") return held;
    this.#note(row.task);
    this.#origins.add(origin, delivery);
    return undefined;
  }

  async #logUnreadable({ task, key }: DueFeature): Promise<void> {
    const head = await this.#host.store.head(task, task.taskId).catch(() => undefined);
    const about = taskFields({ ...task, contextId: head?.contextId });
    this.#host.logger.error("Webhook row is not readable", { ...about, configId: key });
  }

  #drop(delivery: Delivery): void {
    this.#held.delete(keyOf({ task: delivery.task, key: delivery.configId }));
    if (this.#isFull && this.#held.isHalfFree) this.poll();
  }

  /** Starts as many turns as may run at the same time. */
  #dispatch(): void {
    while (!this.#stopping) {
      const next = this.#origins.next();
      if (next === undefined) return;
      this.#track(this.#turn(next));
    }
  }

  async #turn({ job: delivery, origin, end }: Running<Delivery>): Promise<void> {
    let more = false;
    try {
      const step = await delivery.step();
      more = step.more;
      end(step);
    } catch (cause) {
      end({});
      // The row stays due, or its claim expires, so a later poll finds it.
      const fields = { ...delivery.fields, cause };
      this.#host.logger.error("Webhook step failed; retrying", fields);
    }
    if (more && !this.#stopping) this.#origins.add(origin, delivery);
    else if (more) await this.#release(delivery, 0);
    else this.#drop(delivery);
    this.#receivers.ended(origin);
    await this.#clear(origin);
    this.#origins.settle(origin);
    this.#dispatch();
  }

  /** Defers the rows of an origin whose circuit is open. */
  async #clear(origin: Origin<Delivery>): Promise<void> {
    const { clock } = this.#host;
    if (origin.openForMs(clock.elapsed()) === 0) return;
    const waiting = origin.waiting.splice(0);
    await Promise.all(
      waiting.map((delivery) => this.#release(delivery, origin.deferralMs(clock.elapsed(), Math.random()) ?? 0)),
    );
  }

  async #release(delivery: Delivery, wait: number): Promise<void> {
    try {
      await delivery.release(wait);
    } catch (cause) {
      this.#host.logger.warn("Failed to release webhook claim; it will expire", { cause });
    }
    this.#drop(delivery);
  }
}

/** The name need not be unique: if two tasks had the same name, the cost would be one unnecessary poll. */
function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent} ${taskId}`;
}

function keyOf({ task: { agent, taskId }, key }: Pick<DueFeature, "task" | "key">): string {
  return JSON.stringify([agent, taskId, key]);
}

/** Maximum rows that a process holds, waiting for their turn or being delivered. */
const maxRows = 1024;
const maxBytes = 4 << 20;

interface Held {
  readonly delivery: Delivery;
  readonly origin: Origin<Delivery>;
}

interface Usage {
  readonly rows: number;
  readonly bytes: number;
}

const unused: Usage = { rows: 0, bytes: 0 };

/**
 * The rows that a process holds. Rows of untrusted origins may use half of the space, and one owner's a quarter, so one owner's dead
 * endpoints cannot starve another's.
 */
export class HeldRows {
  readonly #held = new Map<string, Held>();
  #bytes = 0;
  /** Usage by rows of untrusted origins since the last poll began: in all, and by owner. */
  #untrusted = unused;
  #untrustedOf = new Map<string, Usage>();

  get size(): number {
    return this.#held.size;
  }

  get isHalfFree(): boolean {
    return this.#held.size <= maxRows / 2;
  }

  /** The number of rows of untrusted origins. */
  get untrusted(): number {
    return this.#untrusted.rows;
  }

  has(key: string): boolean {
    return this.#held.has(key);
  }

  /** Counts the rows of untrusted origins again, because origins may have answered since the last poll. */
  beginPoll(): void {
    this.#untrusted = unused;
    this.#untrustedOf = new Map();
    for (const held of this.#held.values()) this.#count(held);
  }

  /** Holds a row. `full`: no room for any row. `later`: no room for this row, but for other rows. */
  add(key: string, held: Held): "held" | "full" | "later" {
    const { bytes, task } = held.delivery;
    if (!held.origin.trusted) {
      const own = this.#untrustedOf.get(task.owner) ?? unused;
      if (exceeds(this.#untrusted, bytes, 1 / 2) || exceeds(own, bytes, 1 / 4)) return "later";
    }
    if (exceeds({ rows: this.#held.size, bytes: this.#bytes }, bytes, 1)) return "full";
    this.#held.set(key, held);
    this.#bytes += bytes;
    this.#count(held);
    return "held";
  }

  delete(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    this.#bytes -= held.delivery.bytes;
  }

  #count({ delivery: { bytes, task }, origin }: Held): void {
    if (origin.trusted) return;
    this.#untrusted = plus(this.#untrusted, bytes);
    this.#untrustedOf.set(task.owner, plus(this.#untrustedOf.get(task.owner) ?? unused, bytes));
  }
}

function plus({ rows, bytes }: Usage, more: number): Usage {
  return { rows: rows + 1, bytes: bytes + more };
}

/** Whether one more row would exceed a share of the maximum rows and bytes. */
function exceeds({ rows, bytes }: Usage, more: number, share: number): boolean {
  return rows + 1 > maxRows * share || bytes + more > maxBytes * share;
}
