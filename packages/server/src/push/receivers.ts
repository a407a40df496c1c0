import { sha256, toBase64Url } from "@parley/a2a/internal/base/bytes";
import type { StoreNote } from "../store/index.ts";
import type { Known, Origin, Origins } from "./circuit.ts";
import type { OutboxHost } from "./port.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/*
 * Processes share the state of each receiver's origin as a note in the store, so that a new process starts with that state. Notes are hints:
 * no delivery waits for a note, or fails because of it (docs/decisions/webhooks.md).
 */

/** How often this process reads the note about an origin that has due rows, in milliseconds. */
const askEvery = 5_000;
/** How long to collect changes before storing them, in milliseconds. An origin that recovers causes several changes in a row. */
const tellAfter = 250;
/** How long a note is valid, and how often an unchanged note is stored again, in milliseconds. */
const noteMs = 60 * 60_000;
const repeatMs = noteMs / 4;
/** Maximum notes in one call (`StoreNotes`). */
const maxNotes = 1_000;

/** Shares the state of origins with other processes, and reads the state that they share. */
export class Receivers<Job extends { readonly task: { readonly owner: string } }> {
  readonly #host: Pick<OutboxHost, "clock" | "logger" | "store">;
  readonly #origins: Origins<Job>;
  readonly #changed = new Map<string, Known>();
  #clearTimer: (() => void) | undefined;

  constructor(host: Pick<OutboxHost, "clock" | "logger" | "store">, origins: Origins<Job>) {
    this.#host = host;
    this.#origins = origins;
  }

  /** Whether some changes are not shared yet. */
  get hasNews(): boolean {
    return this.#changed.size > 0;
  }

  /** Reads the notes about these origins, except those that were read recently. Never rejects. */
  async ask(names: Iterable<string>): Promise<void> {
    const { notes } = this.#host.store;
    if (notes === undefined) return;
    const { wall, elapsed } = this.#origins.now();
    const origins = [...new Set(names)].map((name) => this.#origins.of(name));
    const asked = origins.filter(({ askedAt }) => elapsed - askedAt >= askEvery).slice(0, maxNotes);
    if (asked.length === 0) return;
    try {
      const keys = await Promise.all(asked.map(({ name }) => keyOf(name)));
      const found = await notes.read(keys, wall);
      for (const [at, origin] of asked.entries()) this.#origins.learn(origin, readKnown(found.get(keys[at] ?? "")));
    } catch (cause) {
      for (const origin of asked) this.#origins.learn(origin, undefined);
      this.#host.logger.debug("Failed to read notes about webhook receivers; continuing without them", { cause });
    }
  }

  ended(origin: Origin<Job>): void {
    if (this.#host.store.notes === undefined) return;
    const known = origin.news(this.#origins.now(), repeatMs);
    if (known === undefined) return;
    this.#changed.set(origin.name, known);
    this.#clearTimer ??= this.#host.clock.after(tellAfter, () => void this.tell());
  }

  /** Stores the changed notes now. Never rejects. */
  async tell(): Promise<void> {
    this.#clearTimer?.();
    this.#clearTimer = undefined;
    const { notes } = this.#host.store;
    const news = [...this.#changed];
    this.#changed.clear();
    const now = this.#host.clock.now();
    try {
      for (let at = 0; at < news.length; at += maxNotes) {
        const page = news.slice(at, at + maxNotes);
        await notes?.write(await Promise.all(page.map(([name, known]) => noteOf(name, known, now))), now);
      }
    } catch (cause) {
      this.#host.logger.debug("Failed to write notes about webhook receivers; continuing without them", { cause });
    }
  }
}

const knownJson = storedJson<Known>();

async function noteOf(name: string, known: Known, now: number): Promise<StoreNote> {
  return { key: await keyOf(name), value: knownJson.write(known), until: Math.ceil(now + noteMs) };
}

/** The key is a hash, because a host name may identify a person, and notes remain after an owner's data is deleted. */
async function keyOf(name: string): Promise<string> {
  return `push ${toBase64Url(await sha256(name))}`;
}

/** Reads a note. `undefined`: another release wrote the note in another format. */
function readKnown(value: string | undefined): Known | undefined {
  if (value === undefined) return undefined;
  const known = knownJson.read(value);
  const { succeeded, at, failures, pause, until, allowed, takes } = known;
  const isKnown = [at, failures, pause, until, allowed, takes].every(Number.isFinite);
  return typeof succeeded === "boolean" && isKnown ? known : undefined;
}
