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

/** A request with all that came back. It is replaced when it changes. */
export interface Exchange {
  readonly request: RequestRecord;
  readonly response?: ResponseRecord;
  readonly pieces: readonly PieceRecord[];
  /** The record of its end. Absent: it is not over. */
  readonly ended?: EndRecord;
  readonly error?: string;
  /** Bytes of the answer so far. */
  readonly bytes: number;
}

/** The newest exchanges, oldest first. */
export const exchanges = signal<readonly Exchange[]>([]);

/** Whether an exchange is one with an agent; absent: with any. Who has sent a webhook is not known, so it is one of each. */
export function isOf(agent: string | undefined): (exchange: Exchange) => boolean {
  return ({ request }) => (agent ?? request.agent) === request.agent || request.agent === webhooks;
}

/** Whether records come. `undefined`: not yet. */
export const isLive = signal<boolean | undefined>(undefined);

/** Counts the records of calls that may change a task: those that only list tasks do not count. */
export const activity = signal(0);

/** Maximum exchanges that the page keeps. The server has more in its log. */
const maxExchanges = 2_000;

/** Characters of all exchanges that the page keeps: beyond them the oldest are forgotten. */
const maxCharacters = 64 << 20;

/** Pieces of an exchange that the page keeps. */
const maxPieces = 200_000;

/** The pieces grow in place: to copy them for each piece would take quadratic time. */
type Growing = Exchange & { readonly pieces: PieceRecord[] };

const all = new Map<number, Growing>();

/** Characters of what is in `all`. */
let characters = 0;

/** Forgets the oldest exchanges beyond the limits. The newest stays. */
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

/** Shows records, oldest first. */
function take(records: readonly WireRecord[]): void {
  if (readOnly.value !== undefined) return;
  show(records);
  if (records.some(({ exchange }) => isChange(all.get(exchange)))) activity.value++;
}

function show(records: readonly WireRecord[]): void {
  for (const record of records) apply(record);
  exchanges.value = [...all.values()];
}

/** Shows the records of a file in place of all others. */
export function showRecords(records: readonly WireRecord[]): void {
  clearWire();
  show(records);
}

/** What the page shows, as records. */
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

/** The log of calls that this page makes itself. Its records are shown together, a moment later. */
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

/** Follows the log of the wire for as long as the page is open. */
export async function followWire(): Promise<void> {
  for (;;) {
    try {
      for await (const records of wireAfter(last)) {
        isLive.value = true;
        last = records.at(-1)?.n ?? last;
        take(records);
      }
    } catch {
      // The server is away: asked again below.
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

/** Empties the log of the page. */
export function clearWire(): void {
  all.clear();
  characters = 0;
  exchanges.value = [];
}

/** The command that sends a request again. Masked headers are left for the user to fill in. */
export function asCurl({ method, url, headers, body }: RequestRecord): string {
  const lines = [
    `curl ${quoted(url)}`,
    ...(method === "GET" ? [] : [`-X ${method}`]),
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body.bytes === 0 ? [] : [`--data-raw ${quoted(body.text)}`]),
  ];
  return lines.join(" \\\n  ");
}

/** One word of a shell (POSIX). */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
