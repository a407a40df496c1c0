import { createHash } from "node:crypto";
import { sqlState, type Connection, type Result, type Row, type Value } from "./driver.ts";
import { isSilence } from "./errors.ts";

/** The part of a `pg.Pool`'s client that is used. */
export interface PoolClientLike {
  /** Runs a statement. */
  query(config: StatementConfig): Promise<StatementResult | StatementResult[]>;
  /** Adds a listener for the end of the connection, or for notifications. */
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  /** Stops reporting notifications, or errors. */
  removeAllListeners(event: "notification" | "error"): unknown;
  /** Stops reporting the end. */
  off(event: "error", listener: (error: Error) => void): unknown;
  off(event: "end", listener: () => void): unknown;
  /** Returns the client to the pool. With `destroy`, closes its connection. */
  release(destroy?: boolean): void;
  /** Whether the client pipelines statements. Otherwise each statement waits for the previous one. */
  readonly pipeline?: boolean;
  /** The socket, if the driver exposes it. With a socket, statements sent together become one write. */
  readonly connection?: { readonly stream?: { destroy(): unknown; cork?(): void; uncork?(): void } };
}

interface StatementConfig {
  text: string;
  name?: string;
  values?: unknown[];
  rowMode: "array";
  types: TypeParsers;
  query_timeout: number;
}

interface StatementResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
}

interface Known {
  /** Names of the prepared statements. If absent, no statement is prepared. */
  readonly names?: StatementNames;
  /** Receives evidence that the connection works or does not. */
  readonly liveness?: Liveness;
}

/** A pool client as a connection. A statement fails after `most` milliseconds without an answer. */
export function connectionOver(client: PoolClientLike, most: number, { names, liveness }: Known): Connection {
  let isCorked = false;
  /** Makes all statements of this tick one write, which wakes the server once. */
  function gather(): void {
    const stream = client.connection?.stream;
    if (isCorked || stream?.cork === undefined) return;
    isCorked = true;
    stream.cork();
    process.nextTick(() => {
      isCorked = false;
      stream.uncork?.();
    });
  }
  async function run(text: string, values: readonly Value[] | undefined, silence: number): Promise<Result> {
    const config: StatementConfig = { text, rowMode: "array", types: typeParsers, query_timeout: silence };
    if (values !== undefined) {
      config.values = [...values];
      // Several statements in one text have no values, and cannot be prepared.
      const name = names?.of(text);
      if (name !== undefined) config.name = name;
    }
    const sent = performance.now();
    try {
      const answer = await client.query(config);
      liveness?.heard(client);
      return resultOf(Array.isArray(answer) ? answer.at(-1) : answer);
    } catch (thrown) {
      if (isSilence(thrown)) liveness?.wasSilent(sent);
      if (config.name !== undefined) names?.failed(thrown);
      throw thrown;
    }
  }
  let last: Promise<unknown> = Promise.resolve();
  return {
    query(text, values, silence = most) {
      if (client.pipeline === true) {
        gather();
        return run(text, values, silence);
      }
      // `pg` 8 warns of a statement that is sent while another runs, and `pg` 9 rejects it.
      const next = last.then(() => run(text, values, silence));
      last = next.catch(ignore);
      return next;
    },
    backend: "processID" in client && typeof client.processID === "number" ? client.processID : undefined,
  };
}

function resultOf(result: StatementResult | undefined): Result {
  // The configured parsers return only values of this type.
  return { rows: (result?.rows ?? []) as Row[], count: result?.rowCount ?? 0 };
}

function ignore(): void {}

/** The parsers that `pg` uses for the text of columns, by column type (`pg_type.oid`). */
export interface TypeParsers {
  getTypeParser(oid: number, format?: "text" | "binary"): (text: string) => Value;
}

/** These parsers do not depend on the program's settings for its pool. 8-byte integers become numbers; JSON and times stay text. */
const typeParsers: TypeParsers = {
  getTypeParser: (oid, format) => (format === "binary" ? refuse : (parsers[oid] ?? String)),
};

const parsers: Readonly<Record<number, (text: string) => Value>> = {
  16: (text) => text === "t",
  17: bytes,
  20: integer, // int8, also of count()
  21: integer, // int2
  23: integer, // int4
  26: integer, // oid
  700: Number, // float4
  701: Number, // float8
  1700: Number, // numeric, also of sum(int8)
  1005: integers, // int2[]
  1007: integers, // int4[]
  1016: integers, // int8[]
  1009: texts, // text[]
  1015: texts, // varchar[]
  2951: texts, // uuid[]
};

function refuse(): never {
  throw new TypeError("The pool must not have the option `binary`");
}

function integer(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError("An integer in the database exceeds Number.MAX_SAFE_INTEGER");
  return value;
}

function bytes(text: string): Uint8Array {
  // The default `escape` of PostgreSQL before 9.0 is not supported.
  if (!text.startsWith("\\x")) throw new RangeError("The database must have bytea_output = hex");
  return Buffer.from(text.slice(2), "hex");
}

function integers(text: string): readonly Value[] {
  return elements(text).map((element) => (element === null ? null : integer(element)));
}

function texts(text: string): readonly Value[] {
  return elements(text);
}

/** The elements of an array of one dimension: `{a,"b \"c\"",NULL}` (PostgreSQL §8.15.6). */
function elements(text: string): readonly (string | null)[] {
  const found: (string | null)[] = [];
  const element = /"((?:[^"\\]|\\.)*)"|([^,{}"]+)/gs;
  for (const [, inQuotes, bare] of text.matchAll(element)) {
    if (inQuotes !== undefined) found.push(inQuotes.replaceAll(/\\(.)/gs, "$1"));
    else found.push(bare === "NULL" ? null : (bare ?? ""));
  }
  return found;
}

/** Milliseconds of idle time after which a connection is checked before use. */
const doubtAfter = 5000;

/**
 * Tracks when the connections of a pool last answered. NATs, firewalls and lost machines drop connections silently. If one
 * connection goes silent, connections that have not answered since then are not used either.
 */
export class Liveness {
  readonly #answered = new WeakMap<PoolClientLike, number>();
  /** When the last unanswered statement was sent. */
  #silent = -Infinity;

  /** Whether the connection must be checked before use. A new connection needs no check. */
  isDoubtful(client: PoolClientLike): boolean {
    const at = this.#answered.get(client);
    return at !== undefined && (this.isLost(client) || performance.now() - at > doubtAfter);
  }

  /** Whether another connection went silent after this one last answered. */
  isLost(client: PoolClientLike): boolean {
    return (this.#answered.get(client) ?? Infinity) < this.#silent;
  }

  heard(client: PoolClientLike): void {
    this.#answered.set(client, performance.now());
  }

  wasSilent(sent: number): void {
    this.#silent = Math.max(this.#silent, sent);
  }
}

/** Number of executions before a statement gets a name, because preparing a rare statement would waste memory of the server. */
const soon = 3;
/** The maximum number of named texts. The source code has fewer texts. */
const maxTexts = 500;

/**
 * Names of prepared statements. The server parses and plans a named statement once per connection, which takes longer than running most
 * statements (docs/decisions/wakeups.md). Behind a pooler, statements get no names, because the next transaction may be in another session.
 */
export class StatementNames {
  readonly #texts = new Map<string, { runs: number; name?: string }>();
  #isOn = false;
  /** Part of each name. With a new generation, the server parses every statement again. */
  #generation = 0;

  use(): void {
    this.#isOn = true;
  }

  /** The name of a statement to run, if the statement has a name. */
  of(text: string): string | undefined {
    if (!this.#isOn) return undefined;
    const known = this.#texts.get(text);
    if (known === undefined) {
      if (this.#texts.size < maxTexts) this.#texts.set(text, { runs: 1 });
      return undefined;
    }
    if (known.name !== undefined) return known.name;
    if ((known.runs += 1) < soon) return undefined;
    // Another store may use the same connections, so equal names have equal texts.
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
    return (known.name = `parley_${this.#generation}_${digest}`);
  }

  failed(thrown: unknown): void {
    if (!isStale(thrown)) return;
    this.#texts.clear();
    this.#generation += 1;
    // A pooler must be in between.
    if (!isOldPlan(thrown)) this.#isOn = false;
  }
}

/** Whether a statement failed because the session does not know its name or uses it for another statement, or because the table has changed. */
export function isStale(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "26000" || state === "42P05" || isOldPlan(thrown);
}

/** The columns of a table have changed (PostgreSQL: "cached plan must not change result type"). */
function isOldPlan(thrown: unknown): boolean {
  return (
    sqlState(thrown) === "0A000" &&
    thrown instanceof Error &&
    "routine" in thrown &&
    thrown.routine === "RevalidateCachedQuery"
  );
}
