import { signal } from "@preact/signals";
import {
  webhooks,
  type EndRecord,
  type PieceRecord,
  type RequestRecord,
  type ResponseRecord,
  type WireRecord,
} from "../src/api.ts";
import type { Recorder } from "../src/recording.ts";
import { readOnly } from "./saved.ts";
import { wireAfter } from "./server.ts";

/** A request and the part of its response that has arrived. Immutable: each change creates a new object. */
export interface Exchange {
  readonly request: RequestRecord;
  readonly response?: ResponseRecord;
  readonly pieces: readonly PieceRecord[];
  /** The end record. Absent: the exchange is still open. */
  readonly ended?: EndRecord;
  readonly error?: string;
  /** Bytes of the response body that have arrived. */
  readonly bytes: number;
}

/** The newest exchanges, oldest first. */
export const exchanges = signal<readonly Exchange[]>([]);

/** Whether an exchange belongs to an agent (absent: to any). The sender of a webhook is unknown, so webhooks belong to every agent. */
export function isOf(agent: string | undefined): (exchange: Exchange) => boolean {
  return ({ request }) => (agent ?? request.agent) === request.agent || request.agent === webhooks;
}

/** Whether the page receives records. `undefined`: not connected yet. */
export const isLive = signal<boolean | undefined>(undefined);

/** Incremented for records of calls that may change a task. Calls that only read tasks do not count. */
export const activity = signal(0);

/** Maximum exchanges that the page keeps. The server's log keeps more. */
const maxExchanges = 2_000;

/** Maximum characters of all exchanges. Beyond it, the page drops the oldest. */
const maxCharacters = 64 << 20;

/** Maximum pieces of an exchange that the page keeps. */
const maxPieces = 200_000;

/** Appends pieces in place: copying them for each piece would take quadratic time. */
type Growing = Exchange & { readonly pieces: PieceRecord[] };

const all = new Map<number, Growing>();

/** Number of characters in `all`. */
let characters = 0;

/** Drops the oldest exchanges beyond the limits. Always keeps the newest. */
function forget(): void {
  for (const [number, { request, pieces }] of all) {
    if (all.size === 1 || (all.size <= maxExchanges && characters <= maxCharacters)) return;
    all.delete(number);
    characters -= request.body.text.length + pieces.reduce((sum, { body }) => sum + body.text.length, 0);
  }
}

function apply(record: WireRecord): void {
  if (record.kind === "request") {
    all.set(record.exchange, { request: record, pieces: [], bytes: 0 });
    characters += record.body.text.length;
    forget();
    return;
  }
  const known = all.get(record.exchange);
  if (known === undefined) return;
  all.set(record.exchange, changed(known, record));
  forget();
}

function changed(known: Growing, record: Exclude<WireRecord, RequestRecord>): Growing {
  if (record.kind === "response") return { ...known, response: record };
  if (record.kind === "end") {
    return { ...known, ended: record, ...(record.error !== undefined && { error: record.error }) };
  }
  if (known.pieces.length < maxPieces && characters < 2 * maxCharacters) {
    known.pieces.push(record);
    characters += record.body.text.length;
  }
  return { ...known, bytes: known.bytes + record.body.bytes };
}

/** Shows new records. They must be ordered, oldest first. */
function take(records: readonly WireRecord[]): void {
  if (readOnly.value !== undefined) return;
  show(records);
  if (records.some(({ exchange }) => isChange(all.get(exchange)))) activity.value++;
}

function show(records: readonly WireRecord[]): void {
  for (const record of records) apply(record);
  exchanges.value = [...all.values()];
}

/** Replaces all records with the records of a file. */
export function showRecords(records: readonly WireRecord[]): void {
  clearWire();
  show(records);
}

/** The records of all exchanges on the page. */
export function recordsOf(): readonly WireRecord[] {
  return [...all.values()]
    .flatMap(({ request, response, pieces, ended }): readonly WireRecord[] => [
      request,
      ...(response === undefined ? [] : [response]),
      ...pieces,
      ...(ended === undefined ? [] : [ended]),
    ])
    .toSorted((a, b) => a.n - b.n);
}

let last = 0;
let lastExchange = 0;
let batch: WireRecord[] = [];

/** Records calls that this page makes itself. Shows the records in batches, every 50 ms. */
export const recorder: Recorder = {
  nextExchange: () => ++lastExchange,
  add(record) {
    if (batch.push({ ...record, n: ++last, at: Date.now() }) > 1) return;
    setTimeout(() => {
      const records = batch;
      batch = [];
      take(records);
    }, 50);
  },
};

/** Follows the wire log while the page is open. */
export async function followWire(): Promise<void> {
  for (;;) {
    try {
      for await (const records of wireAfter(last)) {
        isLive.value = true;
        last = records.at(-1)?.n ?? last;
        take(records);
      }
    } catch {
      // The server is unreachable; the loop retries.
    }
    isLive.value = false;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

function isChange(exchange: Exchange | undefined): boolean {
  return (
    exchange !== undefined &&
    !/"method":"(?:ListTasks|GetTask)"|\/tasks\?/.test(exchange.request.body.text + exchange.request.url)
  );
}

/** Clears the log of this page, not the server's log. */
export function clearWire(): void {
  all.clear();
  characters = 0;
  exchanges.value = [];
}
