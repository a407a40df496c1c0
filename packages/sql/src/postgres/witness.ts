import type { Queries } from "./driver.ts";

/**
 * Rows that transactions write to be found again. Where the connection is lost during a commit, the row says whether the commit took
 * effect: also after a crash, and after a failover to a replica that did not have it. The numbers of transactions cannot say it, since a
 * server gives them out again whose commit it lost.
 *
 * Each transaction that is open has a row of its own, so that none waits for another one.
 */
export class Witnesses {
  readonly #table: string;
  #free: Witness[] = [];

  /** `table`: its name as it stands in SQL. It has the columns `id`, `token` and `at`. */
  constructor(table: string) {
    this.#table = table;
  }

  /** A row that no other transaction of this process writes now. */
  take(): Witness {
    return this.#free.pop() ?? new Witness(this.#table);
  }

  /** The transaction is over, and what became of it is known. */
  giveBack(witness: Witness): void {
    this.#free.push(witness);
  }
}

/** A row that one transaction at a time writes. */
export class Witness {
  readonly #id = crypto.randomUUID();
  readonly #table: string;
  #token = 0;

  constructor(table: string) {
    this.#table = table;
  }

  /** The statement that a new transaction begins with. It also gives the transaction its number, before any sequence does. */
  begin(): string {
    this.#token += 1;
    return `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', ${this.#token})
      ON CONFLICT (id) DO UPDATE SET token = excluded.token, at = excluded.at`;
  }

  /**
   * Whether the last transaction has taken effect. It waits for that transaction while the server still has it, since both write the
   * row. What it did not find can never take effect later.
   */
  async isCommitted(queries: Queries): Promise<boolean> {
    const { rows } = await queries.query(
      `INSERT INTO ${this.#table} AS w (id, token) VALUES ('${this.#id}', 0)
       ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING w.token`,
    );
    return rows[0]?.[0] === this.#token;
  }
}
