import { createHash } from "node:crypto";
import { sqlState } from "./driver.ts";

/** How often a text is run before it gets a name: what is run once in a while would only take memory of the server. */
const soon = 3;
/** Texts that are counted and named. They are constants of the source code, of which there are fewer. */
const maxTexts = 500;

/**
 * Names of statements: the server parses and plans a statement with a name once in a connection, which takes longer than to run most of
 * them (docs/decisions/wakeups.md). Behind a pooler there are none, since the next transaction may be in a session that does not know them.
 */
export class StatementNames {
  readonly #texts = new Map<string, { runs: number; name?: string }>();
  #isOn = false;
  /** Part of each name: with another one, every statement is parsed again. */
  #generation = 0;

  /** From now on there are names: each connection keeps its session. */
  use(): void {
    this.#isOn = true;
  }

  /** The name of a statement that is about to run. `undefined`: it has none. */
  of(text: string): string | undefined {
    if (!this.#isOn) return undefined;
    const known = this.#texts.get(text);
    if (known === undefined) {
      if (this.#texts.size < maxTexts) this.#texts.set(text, { runs: 1 });
      return undefined;
    }
    if (known.name !== undefined) return known.name;
    if ((known.runs += 1) < soon) return undefined;
    // Another store may use the same connections: the same name is the same text.
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
    return (known.name = `parley_${this.#generation}_${digest}`);
  }

  /** A statement has failed. Where that is because of its name, it can run again. */
  failed(thrown: unknown): void {
    if (!isStale(thrown)) return;
    this.#texts.clear();
    this.#generation += 1;
    // Somebody else gives out the sessions after all, and does not say so.
    if (!isOldPlan(thrown)) this.#isOn = false;
  }
}

/** Whether a statement failed because of its name: the session does not know it, has another of that name, or its table was changed since. */
export function isStale(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "26000" || state === "42P05" || isOldPlan(thrown);
}

/** The columns of a table have changed, as by the next release (PostgreSQL: "cached plan must not change result type"). */
function isOldPlan(thrown: unknown): boolean {
  return (
    sqlState(thrown) === "0A000" &&
    thrown instanceof Error &&
    "routine" in thrown &&
    thrown.routine === "RevalidateCachedQuery"
  );
}
