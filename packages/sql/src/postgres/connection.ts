import type { Connection, Result, Row, Value } from "./driver.ts";
import { isSilence } from "./errors.ts";
import type { Liveness } from "./liveness.ts";
import type { StatementNames } from "./names.ts";
import { typeParsers, type TypeParsers } from "./values.ts";

/** What of a client of a `pg.Pool` is used. */
export interface PoolClientLike {
  /** Runs a statement. */
  query(config: StatementConfig): Promise<StatementResult | StatementResult[]>;
  /** Tells of the end of the connection, and of notifications. */
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  /** Stops to tell of notifications, or of errors. */
  removeAllListeners(event: "notification" | "error"): unknown;
  /** Stops to tell of the end. */
  off(event: "error", listener: (error: Error) => void): unknown;
  off(event: "end", listener: () => void): unknown;
  /** Gives the client back. `destroy`: closes its connection. */
  release(destroy?: boolean): void;
  /** Whether what is sent at once travels at once. Without it, statements wait for one another. */
  readonly pipeline?: boolean;
  /** Its socket, where the driver shows it: what is sent at once is then one write. */
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
  /** Names of the statements that are prepared. Absent: none is. */
  readonly names?: StatementNames;
  /** Told what shows whether the connection works. */
  readonly liveness?: Liveness;
}

/** A client of a pool as a connection. `most`: milliseconds without an answer, after which a statement has failed, where it has no other limit. */
export function connectionOver(client: PoolClientLike, most: number, { names, liveness }: Known): Connection {
  let isCorked = false;
  /** What is sent before the end of this turn is one write, and wakes the server once. */
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
      // `pg` 8 warns of statements that are sent while another one runs, and `pg` 9 refuses them.
      const next = last.then(() => run(text, values, silence));
      last = next.catch(ignore);
      return next;
    },
    backend: "processID" in client && typeof client.processID === "number" ? client.processID : undefined,
  };
}

function resultOf(result: StatementResult | undefined): Result {
  // The parsers make nothing but values.
  return { rows: (result?.rows ?? []) as Row[], count: result?.rowCount ?? 0 };
}

function ignore(): void {}
