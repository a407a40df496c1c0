import { eventOf, type NewRecord } from "../model/index.ts";
import type { Scope, Store } from "../store/index.ts";

const pageSize = 256;

/**
 * What a lost run had stored after its last checkpoint (D6). A resumed run says it again, word for word, as far as the agent
 * does the same again: that much is not stored twice. From the first difference on everything is new.
 */
export class Replay {
  readonly #store: Store;
  readonly #scope: Scope;
  readonly #taskId: string;
  readonly #turn: number;
  #skip: number;
  #after: number;
  #page: NewRecord[] = [];
  #over = false;

  /** `skip`: events of the turn that the checkpoint covers. `after`: `seq` of the turn's message. */
  constructor(store: Store, scope: Scope, taskId: string, turn: number, after: number, skip: number) {
    this.#store = store;
    this.#scope = scope;
    this.#taskId = taskId;
    this.#turn = turn;
    this.#after = after;
    this.#skip = skip;
  }

  get over(): boolean {
    return this.#over;
  }

  /** The records that are not in the log yet. */
  async unsaid(records: readonly NewRecord[]): Promise<readonly NewRecord[]> {
    for (let i = 0; i < records.length; i += 1) {
      const stored = await this.#next();
      if (stored === undefined || !same(stored, records[i] as NewRecord)) {
        this.#over = true;
        return records.slice(i);
      }
    }
    return [];
  }

  async #next(): Promise<NewRecord | undefined> {
    for (;;) {
      const record = this.#page.shift() ?? (await this.#read());
      if (record === undefined) return undefined;
      if (record.turn !== this.#turn || record.actor !== "agent") continue;
      if (this.#skip === 0) return record;
      this.#skip -= 1;
    }
  }

  async #read(): Promise<NewRecord | undefined> {
    const page = await this.#store.read(this.#scope, this.#taskId, {
      after: this.#after,
      limit: pageSize,
      kinds: ["statusUpdate", "artifactUpdate"],
    });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) return undefined;
    this.#after = last.seq;
    this.#page = [...page.records];
    return this.#page.shift();
  }
}

/** Whether two records say the same at different times. */
function same(stored: NewRecord, said: NewRecord): boolean {
  if (stored.kind !== said.kind) return false;
  if (stored.json === said.json) return true;
  return stored.kind === "statusUpdate" && withoutTime(stored) === withoutTime(said);
}

function withoutTime(record: NewRecord): string {
  return JSON.stringify(eventOf(record), (key, value: unknown) => (key === "timestamp" ? undefined : value));
}
