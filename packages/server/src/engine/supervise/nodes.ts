import type { StoreNode, StoreNodes } from "../../store/index.ts";
import { Emitter } from "../shared/collections.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Outage } from "./outage.ts";

/** Number of heartbeats in `lease.ttl`, the silence after which a process counts as dead. */
const beats = 16;
/** How many missed heartbeats make a process silent. */
const maxMissed = 4;
/** Longest interval between two heartbeats, in milliseconds. */
const longestPause = 1_000;
/** Tasks that cannot be resumed fail after this many times `lease.ttl`, because a failure is final. */
export const patience = 4;
/** How long after its death a process is forgotten, in milliseconds. */
const forgetAfter = 60 * 60_000;
/** For how long after a death each scan looks for the process's tasks, in milliseconds. Scans that read all leases find tasks after that. */
const searchFor = 10 * 60_000;

/** Replaces the heartbeat count of a process that the store has forgotten. */
const lost = -1;

interface NodesDeps {
  readonly settings: Pick<EngineSettings, "store" | "clock" | "lease" | "logger">;
  readonly outage: Pick<Outage, "failed">;
}

/** A process, as seen by this process. Times are on the monotonic clock of this process. */
interface Seen {
  readonly beats: number;
  readonly since: number;
}

/**
 * Tracks which processes are alive, if the store counts processes. A process is dead once this process has read for `lease.ttl` without
 * a new heartbeat of that process, so no wall clock is involved. After this process was paused, or could not reach the store, it restarts that time,
 * because it could not see heartbeats of others either.
 */
export class Nodes {
  /** Emits when a process has been silent for so long that its tasks may be taken over. `unknown`: whether the store has forgotten the process. */
  readonly gone: Emitter<[unknown: boolean]> = new Emitter();
  /** Emits when this process was silent for so long that other processes may have taken its tasks over. */
  readonly wasAbsent: Emitter = new Emitter();
  /** Emits when the store has not answered a heartbeat of this process for `lease.ttl`: from now on, other processes may run its tasks. */
  readonly cutOff: Emitter = new Emitter();
  readonly #deps: NodesDeps;
  readonly #nodes: StoreNodes | undefined;
  #seen: ReadonlyMap<string, Seen> = new Map();
  /** When the last heartbeat was sent, and when the store last answered. */
  #sent = -Infinity;
  #arrived = -Infinity;
  /** Whether the last answer came long after the previous answer. */
  #isLate = false;
  /** The processes that were reported as gone, and the stage that was reported. */
  #told = new Map<string, number>();
  #clearTimer: () => void = () => {};
  #clearCutOff: () => void = () => {};
  #beating: Promise<void> | undefined;
  #stopped = false;
  #background = true;
  /** How many heartbeats in a row have failed. */
  #failures = 0;

  constructor(deps: NodesDeps) {
    this.#deps = deps;
    this.#nodes = deps.settings.store.nodes;
  }

  /** Starts the heartbeats. Without `background`, they are sent only by calls of `beat`. */
  start(background: boolean): void {
    this.#background = background;
    void this.beat();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#clearTimer();
    this.#clearCutOff();
    await this.#beating;
    await this.#nodes?.forget([this.#deps.settings.lease.holder]).catch(() => {});
  }

  /**
   * How long a process has been silent, in milliseconds. `undefined`: unknown. 0 if this process was paused or could not reach the store,
   * so it may have missed heartbeats.
   */
  silence(node: string): number | undefined {
    const seen = this.#seen.get(node);
    if (seen === undefined) return undefined;
    return this.#deps.settings.clock.elapsed() - this.#arrived > this.#patience ? 0 : this.#sent - seen.since;
  }

  /** All known processes, and how long each process has been silent, in milliseconds. */
  silences(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#seen.keys(), (name) => [name, this.silence(name) ?? 0]));
  }

  /** Whether a process has missed some heartbeats. True for an unknown process once this process has read the heartbeats. */
  isSilent(node: string): boolean {
    return (this.silence(node) ?? (this.#arrived === -Infinity ? 0 : Infinity)) > maxMissed * this.#pause;
  }

  /** For how long the last read of other processes' heartbeats is valid, in milliseconds. */
  get #patience(): number {
    return this.#deps.settings.lease.ttl / 2;
  }

  get #pause(): number {
    return Math.min(longestPause, this.#deps.settings.lease.ttl / beats);
  }

  /** The processes that may have left tasks behind. */
  get dead(): readonly string[] {
    return [...this.#told.keys()].filter((name) => (this.silence(name) ?? Infinity) < searchFor);
  }

  /** Sends a heartbeat and reads the heartbeats of other processes. Never rejects. */
  async beat(): Promise<void> {
    if (this.#nodes === undefined || this.#stopped) return;
    await (this.#beating ??= this.#beat(this.#nodes).finally(() => (this.#beating = undefined)));
  }

  async #beat(nodes: StoreNodes): Promise<void> {
    const { clock, lease, logger } = this.#deps.settings;
    this.#clearTimer();
    const sent = clock.elapsed();
    let wait = this.#pause;
    try {
      const found = await nodes.beat(lease.holder, lease.ttl / 4);
      this.#note(found, sent);
      this.#awaitNext(sent);
      wait = Math.min(wait, this.#untilNext());
      this.#failures = 0;
      await this.#forget(nodes);
    } catch (cause) {
      this.#failures += 1;
      // A broken connection fails one heartbeat, so log only the second failure.
      const isLogged = this.#failures === 2;
      void this.#deps.outage.failed(cause).then((isOutage) => {
        if (isLogged && !isOutage && !this.#stopped) logger.error("Heartbeat failed; retrying", { cause });
      });
    }
    if (!this.#stopped && this.#background) this.#clearTimer = clock.after(Math.max(1, wait), () => void this.beat());
  }

  /**
   * Other processes count from the time when the store received the heartbeat, this process from the earlier time when it sent the
   * heartbeat. So this process knows no later than the others that its tasks may be taken over.
   */
  #awaitNext(sent: number): void {
    const { clock, lease } = this.#deps.settings;
    this.#clearCutOff();
    if (this.#stopped || !this.#background) return;
    const left = Math.max(1, sent + lease.ttl - clock.elapsed());
    this.#clearCutOff = clock.after(left, () => this.cutOff.emit());
  }

  #note(found: readonly StoreNode[], sent: number): void {
    const { clock } = this.#deps.settings;
    const arrived = clock.elapsed();
    const gap = arrived - this.#arrived;
    const wasAway = gap > this.#patience;
    const before = this.#sent;
    const seen = new Map<string, Seen>();
    for (const { name, beats: count, silent } of found) {
      const known = this.#seen.get(name);
      if (known === undefined || (wasAway && (known.beats !== count || !this.#isLate)))
        seen.set(name, { beats: count, since: arrived });
      // While all answers are late, an unchanged count still proves silence. Otherwise no node would ever be declared dead.
      else if (wasAway) seen.set(name, { beats: count, since: known.since + gap - this.#patience });
      else if (known.beats === count) seen.set(name, known);
      // The heartbeat was after the previous read, even if the store's clock has jumped.
      else seen.set(name, { beats: count, since: Math.max(before, arrived - Math.max(0, silent)) });
    }
    const isFirst = this.#arrived === -Infinity;
    const missing = [...this.#seen].filter(([name]) => !seen.has(name));
    const isMissing = missing.some(([, known]) => known.beats !== lost);
    // After a crash or failover of the database, the table is empty. Remember the processes, because live ones soon return.
    for (const [name, { since }] of missing) {
      if (sent - since > forgetAfter) continue;
      const counted = wasAway ? (this.#isLate ? since + gap - this.#patience : arrived) : since;
      seen.set(name, { beats: lost, since: counted });
    }
    this.#seen = seen;
    this.#sent = sent;
    this.#arrived = arrived;
    this.#isLate = wasAway && !isFirst;
    if (wasAway && !isFirst) this.wasAbsent.emit();
    this.#tell(isMissing);
  }

  /** Reports each dead process twice: when its resumable tasks can be taken over, and when its other tasks fail. Also reports stopped processes. */
  #tell(isMissing: boolean): void {
    const { ttl, holder, isGone } = this.#deps.settings.lease;
    const told = new Map<string, number>();
    let isNew = false;
    for (const name of this.#seen.keys()) {
      const silence = this.silence(name) ?? 0;
      let level = name === holder || silence < ttl ? 0 : silence < patience * ttl ? 1 : 2;
      if (level < 2 && name !== holder && this.isSilent(name) && isGone(name)) level = 2;
      if (level > (this.#told.get(name) ?? 0)) isNew = true;
      if (level > 0) told.set(name, level);
    }
    this.#told = told;
    if (isNew || isMissing) this.gone.emit(isMissing);
  }

  /** Time until the next silent process counts as dead, in milliseconds. */
  #untilNext(): number {
    const { ttl } = this.#deps.settings.lease;
    let least = Infinity;
    for (const { since } of this.#seen.values()) {
      const silence = this.#arrived - since;
      for (const limit of [ttl, patience * ttl]) if (silence < limit) least = Math.min(least, limit - silence + 1);
    }
    return least;
  }

  async #forget(nodes: StoreNodes): Promise<void> {
    const dead = [...this.#seen.keys()].filter((name) => (this.silence(name) ?? 0) > forgetAfter);
    if (dead.length > 0) await nodes.forget(dead);
  }
}
