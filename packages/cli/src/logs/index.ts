import { setTimeout as pause } from "node:timers/promises";
import { UsageError } from "../errors.ts";
import type { Io, Signal } from "../io.ts";
import { byteSize, counted, styleFor } from "../output/text.ts";
import { fileSource, maxLineBytes, streamSource, type Line, type Source } from "./lines.ts";
import { Filter, otherText, recordJson, recordOf, recordText, type JsonRecord, type Wanted } from "./record.ts";

/* `parley logs`: the JSON lines of servers, filtered and as text for people. */

interface LogsOptions extends Wanted {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** Poll interval of followed files. */
const lookMs = 200;

/** `parley logs`. */
export async function logs(io: Io, files: readonly string[], options: LogsOptions): Promise<number> {
  const { follow = false } = options;
  const names = files.length === 0 ? ["-"] : files;
  const hasInput = names.includes("-");
  if (hasInput && follow) {
    throw new UsageError("--follow needs a file: standard input is shown until it ends");
  }
  if (files.length === 0 && io.interactive) {
    throw new UsageError("no log. Pass a file, or pipe one: parley serve agent.ts 2>&1 | parley logs");
  }
  const show = new Printer(io, options);
  const stop = new AbortController();
  const sources: Source[] = [];
  let release = (): void => {};
  const interrupted = new Promise<void>((done) => {
    // Ctrl-C also stops the program that writes to standard input. Continues to show what that program logs while it stops.
    const end = (signal: Signal): void => {
      if (!follow && signal !== "SIGTERM") return;
      stop.abort();
      done();
    };
    if (follow || hasInput) release = io.onInterrupt(end);
  });
  try {
    for (const name of names) sources.push(name === "-" ? streamSource(io.stdin) : await fileSource(name, io, follow));
    await Promise.race([interrupted, shown(sources, show, follow, stop.signal)]);
    show.end();
    return 0;
  } finally {
    release();
    // A pending read of a pipe would delay the exit.
    for (const source of sources) source.close().catch(() => undefined);
  }
}

/** Shows the lines of sources; with `follow` until the signal. */
async function shown(sources: readonly Source[], show: Printer, follow: boolean, signal: AbortSignal): Promise<void> {
  for (;;) {
    for await (const entry of merged(sources)) {
      if (signal.aborted) return;
      await show.entry(entry);
    }
    if (!follow) return;
    await pause(lookMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
  }
}

interface Entry {
  readonly line: Line;
  readonly record: JsonRecord | undefined;
}

/** The lines that sources have now, by time. A line without a time gets the previous line's. */
async function* merged(sources: readonly Source[]): AsyncGenerator<Entry> {
  const heads: (Entry & { readonly source: Source; readonly time: number })[] = [];
  const read = async (source: Source, before: number): Promise<void> => {
    const line = await source.next();
    if (line === undefined) return;
    const record = recordOf(line);
    heads.push({ line, record, source, time: record?.time ?? before });
  };
  for (const source of sources) await read(source, -Infinity);
  for (;;) {
    const [first, ...others] = heads;
    if (first === undefined) return;
    const next = others.reduce((least, head) => (head.time < least.time ? head : least), first);
    heads.splice(heads.indexOf(next), 1);
    yield next;
    await read(next.source, next.time);
  }
}

/** Prints the records that the filter accepts. */
class Printer {
  readonly #io: Io;
  readonly #json: boolean;
  readonly #filter: Filter;
  #records = 0;
  #others = 0;
  #tooLong = 0;

  constructor(io: Io, options: LogsOptions) {
    this.#io = io;
    this.#json = options.json === true;
    this.#filter = new Filter(options);
  }

  async entry({ line, record }: Entry): Promise<void> {
    const { stdout, env } = this.#io;
    const style = styleFor(stdout, env);
    if (record !== undefined) {
      this.#records++;
      if (!this.#filter.accepts(record)) return;
      stdout.write(this.#json ? recordJson(record) : recordText(record, style));
    } else {
      this.#others++;
      if (this.#filter.isOn || this.#json) {
        if (line.leftOut > 0) this.#tooLong++;
        return;
      }
      stdout.write(otherText(line, style));
    }
    await stdout.ready?.();
  }

  /** Reports lines that were not searched. */
  end(): void {
    const { stderr } = this.#io;
    if (this.#tooLong > 0) {
      stderr.write(`parley: ${counted(this.#tooLong, "line")} of more than ${byteSize(maxLineBytes)} left out\n`);
    }
    if (this.#records === 0 && this.#others > 0 && (this.#filter.isOn || this.#json)) {
      stderr.write(
        "parley: the log has no JSON lines, which a filter needs. A server writes them to a pipe or a file, or with --log-format json\n",
      );
    }
  }
}
