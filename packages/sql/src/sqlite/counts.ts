import type { TaskState } from "@parley/a2a/internal/model/index";
import type { Driver } from "./driver.ts";
import { count, stateNumber } from "./rows.ts";
import type { Tally } from "./scopes.ts";

/** The tasks of one state in one scope, which an index has in order. */
export interface StateList {
  readonly level: "agent" | "owner" | "context";
  readonly id: number;
  readonly state: TaskState;
  /** The number of tasks. */
  readonly held: number;
  readonly tally: Tally;
}

/** A time, and the number of tasks of a list with an older status. */
interface Rung {
  readonly time: number;
  readonly before: number;
}

interface Ladder {
  readonly late: number;
  /** Oldest first, all below `top`. */
  rungs: Rung[];
  top: Rung;
}

/** Up to so many tasks are counted each time, at 20 ns each. */
const few = 1000;
/** Both bound the memory to a few megabytes: a rung is two numbers. */
const maxRungs = 64;
const maxLadders = 1000;
const never = Number.MAX_SAFE_INTEGER;

/**
 * Counts the tasks of a list with a status since some time. There is no counter for that, and counting goes through all of
 * them. So this class remembers how many are older than some times in the past, its rungs, and counts only newer ones.
 *
 * The rungs hold as long as the past has not changed, whichever process writes. No task was added to it while `late`
 * (`Tally`) is the same, and none was removed while the total less the newer ones is the same.
 */
export class Counts {
  readonly #ladders = new Map<string, Ladder>();

  /** Call it in the transaction that read `list`. */
  since(driver: Driver, list: StateList, since: number): number {
    const between = (from: number, to: number): number => countBetween(driver, list, from, to);
    // A new context can get the id of a deleted one, so nothing is remembered of contexts.
    if (list.held <= few || list.level === "context") return between(since, never);
    const ladder = this.#ladder(list, between);
    const { rungs, top } = ladder;
    if (since > top.time) return between(since, never);
    const next = rungs.findIndex(({ time }) => time >= since);
    const index = next < 0 ? rungs.length : next;
    const [below, above = top] = [rungs[index - 1], rungs[index]];
    if (above.time === since) return list.held - above.before;
    const before =
      below !== undefined && since - below.time < above.time - since
        ? below.before + between(below.time, since)
        : above.before - between(since, above.time);
    rungs.splice(index, 0, { time: since, before });
    return list.held - before;
  }

  /** The rungs of a list, new ones if the past has changed. Few tasks are newer than the top. */
  #ladder({ id, state, held, tally }: StateList, between: (from: number, to: number) => number): Ladder {
    const { settled, late } = tally;
    const rungAt = (time: number): Rung => ({ time, before: held - between(time, never) });
    const key = `${id}/${stateNumber(state)}`;
    const known = this.#ladders.get(key);
    const newer = known === undefined ? held : between(known.top.time, never);
    if (known === undefined || known.late !== late || held - newer !== known.top.before) {
      const ladder = { late, rungs: [], top: rungAt(settled) };
      if (this.#ladders.size >= maxLadders) this.#ladders.clear();
      this.#ladders.set(key, ladder);
      return ladder;
    }
    if (known.rungs.length >= maxRungs) known.rungs = known.rungs.filter((_rung, at) => at % 2 === 0);
    if (newer > few && settled > known.top.time) {
      known.rungs.push(known.top);
      known.top = rungAt(settled);
    }
    return known;
  }
}

/** Counts tasks whose status is at `from` or later and before `to`. */
function countBetween(driver: Driver, { level, id, state }: StateList, from: number, to: number): number {
  return count(
    driver
      .prepare(
        `SELECT count(*) FROM tasks INDEXED BY tasks_${level}
         WHERE ${level} = ? AND state = ? AND status_time >= ? AND status_time < ?`,
      )
      .get(id, stateNumber(state), from, to),
  );
}
