import { fromBase64, toBase64, type JsonObject } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import { viewOf } from "../shared/view.ts";

/* Stores the transcript of a session in the state of the conversation, as a `SessionStore` of the SDK. */

interface Key {
  readonly projectKey: string;
  readonly sessionId: string;
  /** The transcript of a subagent. Absent for the transcript of the session itself. */
  readonly subpath?: string;
}

/** A line of a transcript. */
interface Entry {
  readonly type: string;
  readonly message?: unknown;
}

/** The user's own store. */
export interface Store {
  append(key: Key, entries: Entry[]): Promise<void>;
  load(key: Key): Promise<Entry[] | null>;
  listSubkeys?(key: Key): Promise<string[]>;
}

/** The stored session of a conversation. */
interface Stored {
  readonly sessionId: string;
  /** Number of lines in the transcript. Later lines in the user's store belong to a lost run. */
  readonly count: number;
  /** Line ranges of lost runs in the user's store, each as the first line and the line after the last. */
  readonly lost: readonly (readonly number[])[];
  /** The compressed transcripts. Absent if the user's store has them. */
  readonly files?: string;
}

type Files = Record<string, Entry[]>;

const main = "";

/** Maximum time to wait for the SDK to hand over its written lines, in milliseconds. */
const maxWait = 5000;

/** The session of a conversation during a turn. */
export class Session implements Store {
  readonly id: string;
  /** Whether there is a session to resume. */
  readonly exists: boolean;
  readonly #turn: Turn;
  readonly #store: Store | undefined;
  readonly #files: Files;
  readonly #cut: number;
  readonly #lost: (readonly number[])[];
  /** Tool calls without a result. */
  readonly #open = new Set<string>();
  /** Tool calls whose result is in the transcript. */
  readonly #done = new Set<string>();
  /** Tool calls whose result the session's reader has. */
  readonly #held = new Set<string>();
  /** Tool calls whose result is in the store. */
  readonly #released = new Set<string>();
  readonly #waiting = new Set<() => void>();
  #lines: number;
  #count: number;

  private constructor(turn: Turn, store: Store | undefined, stored: Stored | undefined, files: Files) {
    this.#turn = turn;
    this.#store = store;
    this.#files = files;
    this.exists = stored !== undefined;
    this.id = stored?.sessionId ?? crypto.randomUUID();
    this.#cut = this.#lines = this.#count = stored?.count ?? 0;
    this.#lost = [...(stored?.lost ?? [])];
  }

  /** Reads the session of a turn's conversation. */
  static async open(turn: Turn, store: Store | undefined): Promise<Session> {
    const { claude } = turn.context.state<{ readonly claude?: Stored }>() ?? {};
    const files = claude?.files === undefined ? {} : await unpacked(claude.files);
    return new Session(turn, store, claude, files);
  }

  async append(key: Key, entries: Entry[]): Promise<void> {
    await this.#store?.append(key, entries);
    if (this.#store === undefined) (this.#files[key.subpath ?? main] ??= []).push(...entries);
    if (key.subpath !== undefined) return;
    for (const entry of entries) this.#read(entry);
    this.#wake();
  }

  async load(key: Key): Promise<Entry[] | null> {
    if (this.#store === undefined) return this.#files[key.subpath ?? main] ?? null;
    const loaded = await this.#store.load(key);
    if (loaded === null || key.subpath !== undefined) return loaded;
    if (loaded.length > this.#cut) this.#lost.push([this.#cut, loaded.length]);
    this.#lines = this.#count = loaded.length;
    return loaded.filter((_, at) => !this.#lost.some(([from = 0, to = 0]) => at >= from && at < to));
  }

  async listSubkeys(key: Key): Promise<string[]> {
    if (this.#store !== undefined) return (await this.#store.listSubkeys?.(key)) ?? [];
    return Object.keys(this.#files).filter((name) => name !== main);
  }

  /** Waits until the transcript has these tool results. `false` if parallel calls have no result yet, or the SDK does not hand over the results. */
  async hasResults(ids: readonly string[]): Promise<boolean> {
    return (await this.#until(() => ids.every((id) => this.#done.has(id)))) && this.#open.size === 0;
  }

  /** Marks these results as about to be stored. */
  hold(ids: readonly string[]): void {
    for (const id of ids) this.#held.add(id);
    this.#wake();
  }

  /** Marks these results as stored, or as impossible to store. */
  release(ids: readonly string[]): void {
    for (const id of ids) this.#released.add(id);
    this.#wake();
  }

  /** Waits until results are stored. The model must not be called before that. */
  async whenReleased(ids: readonly string[]): Promise<void> {
    // The wait for the SDK is limited; the wait for the store is not.
    const isHeld = await this.#until(() => ids.every((id) => this.#held.has(id)));
    if (isHeld) await this.#until(() => ids.every((id) => this.#released.has(id)), false);
  }

  /** Returns a function that sets the state of the conversation. The next event stores this state. `end` tells whether the answer is over. */
  async state(end: boolean): Promise<() => void> {
    const count = end ? this.#lines : this.#count;
    const own = { ...this.#files, [main]: (this.#files[main] ?? []).slice(0, count) };
    const files = this.#store === undefined ? { files: await packed(own) } : {};
    const stored: JsonObject & Stored = { sessionId: this.id, count, lost: this.#lost, ...files };
    return () => this.#turn.context.setState({ claude: stored });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Resolves to `false` if the condition is not met in time. */
  #until(condition: () => boolean, isLimited = true): Promise<boolean> {
    return new Promise((resolve) => {
      const wake = (): void => {
        if (condition()) finish(true);
      };
      const timer = isLimited ? setTimeout(() => finish(false), maxWait) : undefined;
      const finish = (isMet: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve(isMet);
      };
      this.#waiting.add(wake);
      wake();
    });
  }

  #read({ message, type }: Entry): void {
    this.#lines += 1;
    const { content } = viewOf<{ readonly content: unknown }>(message);
    for (const block of Array.isArray(content) ? (content as Block[]) : []) {
      if (type === "assistant" && block.type === "tool_use") this.#open.add(String(block.id));
      if (type !== "user" || block.type !== "tool_result") continue;
      this.#open.delete(String(block.tool_use_id));
      this.#done.add(String(block.tool_use_id));
      if (this.#open.size === 0) this.#count = this.#lines;
    }
  }
}

interface Block {
  readonly type?: unknown;
  readonly id?: unknown;
  readonly tool_use_id?: unknown;
}

/** Maximum characters of a transcript before compression. A caller can make a transcript a thousand times larger in memory than in the store. */
const maxText = 32 << 20;

async function packed(files: Files): Promise<string> {
  const json = JSON.stringify(files);
  if (json.length > maxText) throw new Error(`The transcript has ${json.length} characters; the maximum is ${maxText}`);
  const stream = new Blob([json]).stream().pipeThrough(new CompressionStream("gzip"));
  return toBase64(new Uint8Array(await new Response(stream).arrayBuffer()));
}

async function unpacked(text: string): Promise<Files> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Files;
}
