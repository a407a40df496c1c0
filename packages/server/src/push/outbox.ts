import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { defer } from "@parley/a2a/internal/base/index";
import { ByteBudget, taskFields } from "@parley/a2a/internal/protocol/index";
import { byVersion } from "@parley/a2a/internal/wire/codec";
import type { DueFeature, TaskAppend, TaskKey } from "../store/index.ts";
import { type Origin, Origins, type Running } from "./circuit.ts";
import { claimMargin, Delivery, type DeliveryContext, Reserved } from "./delivery.ts";
import { createSealer, createSigner, pushKeyring } from "./keys.ts";
import { Places } from "./places.ts";
import type { OpenSecrets, Outbox, OutboxHost, PushSettings, PushSigner } from "./port.ts";
import { Receivers } from "./receivers.ts";
import { fetches, longestWait, originOf, type WebhookCodec } from "./request.ts";
import { dueAt, LostClaims, Rescue } from "./rescue.ts";
import { pushFeature, readConfig, type StoredConfig } from "./stored.ts";

/** Rows that one look reads, besides those that this process holds. */
const pageSize = 64;
/** Tasks of which this process knows that they have configs, in bytes. Events of others are found by the next poll. */
const knownBytes = 4 << 20;
/** How long a row is put off that no process of this version can read, in milliseconds. */
const unreadablePause = 60 * 60_000;

/** What the outbox needs of the other rooms. */
export interface OutboxParts {
  /** The versions that configs may have. The first one is taken for a version that is not among them. */
  readonly codecs: readonly [WebhookCodec, ...WebhookCodec[]];
  readonly open: OpenSecrets;
  readonly signer: PushSigner;
}

/** Makes the outbox of a server. */
export function createOutbox(settings: PushSettings, parts: OutboxParts): (host: OutboxHost) => Outbox {
  return (host) => new Worker(host, settings, parts);
}

/** Looks for rows that are due, and gives each its turns. */
class Worker implements Outbox {
  readonly #host: OutboxHost;
  readonly #context: DeliveryContext;
  readonly #origins: Origins<Delivery>;
  readonly #receivers: Receivers<Delivery>;
  readonly #held = new Places();
  readonly #known = new BoundedMap<true>({ bytes: knownBytes, bytesOf: (key) => memoryOf(key) });
  #knowsAny = false;
  readonly #rescue: Rescue;
  readonly #lost: LostClaims;
  readonly #running = new Set<Promise<void>>();
  #started = false;
  #stopping = false;
  #looking = false;
  #lookAgain = false;
  #lookDue = false;
  /** There were more rows than this process may hold. */
  #isFull = false;
  /** When the first row that was put off is due, on the monotonic clock. */
  #soonest = Infinity;
  #clearTimer: () => void = () => {};

  constructor(host: OutboxHost, settings: PushSettings, { codecs, open, signer }: OutboxParts) {
    const { store, clock, mergeTextParts } = host;
    const { events: policy, bodyBytes, concurrency, concurrencyPerOrigin, retryAfter, timeout } = settings;
    const budget = new ByteBudget(concurrency * bodyBytes, clock, "There is no room for the events of this task now");
    const versions = byVersion(codecs);
    this.#host = host;
    this.#origins = new Origins(clock, concurrency, concurrencyPerOrigin);
    this.#receivers = new Receivers(host, this.#origins);
    this.#rescue = new Rescue(host, Math.max(longestWait(retryAfter), unreadablePause, timeout + claimMargin));
    this.#lost = new LostClaims(host, timeout + claimMargin);
    this.#context = {
      ...host,
      fetchFor: fetches(settings, clock),
      requests: new Set(),
      events: { store, policy, bodyBytes, mergeTextParts },
      room: (owner) => new Reserved(budget, owner),
      open,
      signer,
      codecOf: (version) => versions.get(version) ?? codecs[0],
      waits: retryAfter,
      timeout,
      stopping: () => this.#stopping,
    };
  }

  start(): void {
    this.#started = true;
    this.#look();
  }

  look(): void {
    this.#look();
  }

  takeOver(): void {
    this.#lost.expect();
    this.#look();
  }

  get isBusy(): boolean {
    return this.#lookDue || this.#looking || this.#running.size > 0 || this.#held.size > 0 || this.#receivers.hasNews;
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
    if (effects.some(setsConfig)) this.#note(task);
    if (records.length > 0 && this.#knowsAny && this.#known.get(nameOf(task)) === true) this.#look();
  }

  #note(task: TaskKey): void {
    this.#knowsAny = true;
    this.#known.set(nameOf(task), true);
  }

  /** Looks for rows soon. Events that are stored together cause one look. */
  #look(): void {
    if (!this.#started || this.#stopping || this.#lookDue) return;
    this.#lookDue = true;
    defer(() => {
      this.#lookDue = false;
      if (this.#looking) this.#lookAgain = true;
      else this.#track(this.#lookNow());
    });
  }

  /** `stop` waits for it. */
  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  async #lookNow(): Promise<void> {
    this.#looking = true;
    this.#clearTimer();
    if (this.#soonest <= this.#host.clock.elapsed()) this.#soonest = Infinity;
    try {
      await this.#rescue.look(() => this.#stopping);
      const more = await this.#lost.look(() => this.#stopping);
      do {
        this.#lookAgain = false;
        await this.#page();
      } while (this.#lookAgain && !this.#stopping);
      // What is due is delivered in between.
      if (more) this.#look();
    } catch (cause) {
      if (!this.#stopping) this.#host.logger.error("Looking for webhooks failed and will be tried again", { cause });
    }
    this.#looking = false;
    const { clock, pollInterval } = this.#host;
    const wait = Math.max(1, Math.min(pollInterval, this.#soonest - clock.elapsed()));
    if (!this.#stopping) this.#clearTimer = clock.after(wait, () => this.#look());
  }

  /** Takes the rows that are due. Those whose origin has enough of them here are put off, so that they do not hide the others. */
  async #page(): Promise<void> {
    const { store, agents, clock } = this.#host;
    const limit = this.#held.size + pageSize;
    const rows = await store.dueFeatures({ feature: pushFeature, agents, now: clock.now(), limit });
    const found = rows
      .filter((row) => !this.#held.has(keyOf(row)))
      .map((row) => ({ row, config: readConfig(row.value) }));
    await this.#receivers.ask(found.flatMap(({ config }) => (config === undefined ? [] : [originOf(config.url)])));
    this.#isFull = false;
    this.#origins.beginLook();
    this.#held.beginLook();
    const changes: Promise<unknown>[] = [];
    let taken = 0;
    for (const { row, config } of found) {
      if (this.#stopping) continue;
      const wait = this.#take(row, config, changes.length);
      if (wait === "full") this.#isFull = true;
      else if (wait === undefined) taken += 1;
      else {
        this.#soonest = Math.min(this.#soonest, clock.elapsed() + wait);
        changes.push(this.#host.append(dueAt(row, clock.now() + wait)));
      }
    }
    this.#dispatch();
    await Promise.all(changes);
    if (rows.length === limit && taken + changes.length > 0 && !this.#isFull) this.#lookAgain = true;
  }

  /**
   * Takes a row, so that it waits for its turn here. Otherwise it tells how long the row is to be put off, in milliseconds. `putOff`: how
   * many were put off in this look.
   */
  #take(row: DueFeature, config: StoredConfig | undefined, putOff: number): number | "full" | undefined {
    if (config === undefined) {
      void this.#tellUnreadable(row);
      return unreadablePause;
    }
    const delivery = new Delivery(this.#context, row, config);
    const origin = this.#origins.of(originOf(config.url));
    const wait = origin.putOffFor(this.#host.clock.elapsed(), Math.random());
    if (wait !== undefined) return wait;
    const place = this.#held.placeFor({ delivery, origin });
    if (place === "full") return place;
    if (place === "later") return this.#origins.turnAfter(this.#held.untrusted + putOff);
    this.#hold(row, delivery, origin);
    return undefined;
  }

  async #tellUnreadable({ task, key }: DueFeature): Promise<void> {
    const head = await this.#host.store.head(task, task.taskId).catch(() => undefined);
    const about = taskFields({ ...task, contextId: head?.contextId });
    this.#host.logger.error("The row of a webhook cannot be read", { ...about, configId: key });
  }

  #hold(row: DueFeature, delivery: Delivery, origin: Origin<Delivery>): void {
    this.#note(row.task);
    this.#held.add(keyOf(row), { delivery, origin });
    this.#origins.add(origin, delivery);
  }

  #drop(delivery: Delivery): void {
    this.#held.delete(keyOf({ task: delivery.task, key: delivery.configId }));
    if (this.#isFull && this.#held.isHalfFree) this.#look();
  }

  /** Begins as many turns as may run. */
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
      // The row stays due, or its claim ends: the next look finds it.
      this.#host.logger.error("A webhook could not be delivered now and will be tried again", {
        ...delivery.fields,
        cause,
      });
    }
    if (more && !this.#stopping) this.#origins.add(origin, delivery);
    else if (more) await this.#release(delivery, 0);
    else this.#drop(delivery);
    this.#receivers.ended(origin);
    await this.#clear(origin);
    this.#origins.settle(origin);
    this.#dispatch();
  }

  /** Puts off what waits for an origin that gets no requests now. */
  async #clear(origin: Origin<Delivery>): Promise<void> {
    const { clock } = this.#host;
    if (origin.closedFor(clock.elapsed()) === 0) return;
    const waiting = origin.waiting.splice(0);
    await Promise.all(
      waiting.map((delivery) => this.#release(delivery, origin.putOffFor(clock.elapsed(), Math.random()) ?? 0)),
    );
  }

  async #release(delivery: Delivery, wait: number): Promise<void> {
    try {
      await delivery.release(wait);
    } catch (cause) {
      this.#host.logger.warn("The row of a webhook could not be given back: its claim ends by itself", { cause });
    }
    this.#drop(delivery);
  }
}

function setsConfig(effect: { readonly effect: string; readonly op?: unknown; readonly feature?: unknown }): boolean {
  return effect.effect === "feature" && effect.feature === pushFeature && effect.op === "set";
}

/** A name for each task. Where two had the same, one look too many would be all. */
function nameOf({ agent, taskId }: TaskKey): string {
  return `${agent} ${taskId}`;
}

function keyOf({ task: { agent, taskId }, key }: Pick<DueFeature, "task" | "key">): string {
  return JSON.stringify([agent, taskId, key]);
}

/** The outbox of a server, with what opens the secrets of its configs and signs its requests. */
export function openOutbox(settings: PushSettings, codecs: OutboxParts["codecs"], host: OutboxHost): Outbox {
  const keyring = pushKeyring(settings.keys);
  const { open } = createSealer(keyring);
  return createOutbox(settings, { codecs, open, signer: createSigner(keyring, settings.issuer) })(host);
}
