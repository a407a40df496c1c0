import type { HeaderList, WireRecord } from "./api.ts";

/** A record without the members that the log adds. */
export type NewRecord = WireRecord extends infer One ? (One extends WireRecord ? Omit<One, "n" | "at"> : never) : never;

/** Size of a record without its texts, and of a header without its name and value, in characters. Needed because anyone can send many empty ones. */
const [overhead, headerOverhead] = [200, 150];

/** The newest records of the wire traffic, up to a total number of characters. */
export class WireLog {
  readonly #limit: number;
  /** Records before `#first` are dropped. They are removed in batches, because each removal moves all other records. */
  #records: { readonly record: WireRecord; readonly size: number }[] = [];
  #first = 0;
  readonly #readers = new Set<() => void>();
  #size = 0;
  #last = 0;
  #exchanges = 0;

  /** @param limit - Maximum characters of all records. Default 64 Mi. */
  constructor(limit: number = 64 << 20) {
    this.#limit = limit;
  }

  /** Returns the number of the next request. */
  nextExchange(): number {
    return ++this.#exchanges;
  }

  /** Adds a record, and drops the oldest ones beyond the limit. */
  add(given: NewRecord): void {
    const record = { ...given, n: ++this.#last, at: Date.now() };
    const size = overhead + sizeOf(record);
    this.#records.push({ record, size });
    this.#size += size;
    this.#forget();
    for (const wake of this.#readers) wake();
  }

  /** Streams the records after a number as lines of JSON, and then new records, until `signal` is aborted. */
  lines(after: number, signal: AbortSignal): ReadableStream<Uint8Array> {
    // If `after` is ahead of this log, the reader has read an earlier log, so it gets all records.
    let next = after > this.#last ? 1 : after + 1;
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          next = Math.max(next, this.#oldest);
          if (next > this.#last) await this.#grown(signal);
          if (signal.aborted) return controller.close();
          next = Math.max(next, this.#oldest);
          const { record } = this.#records[this.#first + next - this.#oldest] ?? {};
          if (record === undefined) return;
          next = record.n + 1;
          controller.enqueue(encoder.encode(`${JSON.stringify(record)}\n`));
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Number of the oldest record. */
  get #oldest(): number {
    return this.#records[this.#first]?.record.n ?? this.#last + 1;
  }

  #forget(): void {
    while (this.#size > this.#limit && this.#first < this.#records.length - 1) {
      this.#size -= this.#records[this.#first]?.size ?? 0;
      this.#first++;
    }
    if (this.#first < this.#records.length / 2) return;
    this.#records = this.#records.slice(this.#first);
    this.#first = 0;
  }

  #grown(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#readers.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#readers.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }
}

function sizeOf(record: WireRecord): number {
  if (record.kind === "request") return record.url.length + headersSize(record.headers) + record.body.text.length;
  if (record.kind === "response") return headersSize(record.headers);
  if (record.kind === "piece") return record.body.text.length;
  return record.error?.length ?? 0;
}

function headersSize(headers: HeaderList): number {
  return headers.reduce((sum, [name, value]) => sum + headerOverhead + name.length + value.length, 0);
}
