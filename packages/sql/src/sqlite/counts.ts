import type { TaskState } from "@parley/a2a";
import type { Driver } from "./driver.ts";
import { count, stateNumber } from "./rows.ts";
import type { Tally } from "./scopes.ts";

/** The tasks of one state in one scope, in the order of an index. */
export interface StateList {
  readonly level: "agent" | "owner" | "context";
  readonly id: number;
  readonly state: TaskState;
  /** How many there are. */
  readonly held: number;
  readonly tally: Tally;
}

/** A time, and how many tasks of a list have an older status. */
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

/** So many tasks are simply counted, 20 ns each. */
const few = 1000;
/** Both together a few megabytes: a rung is two numbers. */
const mostRungs = 64;
const mostLadders = 1000;
const never = Number.MAX_SAFE_INTEGER;

/**
 * How many tasks of a list have a status since some time. No counter says so, and counting them goes through them all.
 * So it is remembered how many are older than some times in the past, and only what is newer is counted each time. That
 * shows as well whether the past is as it was, whoever writes: nothing comes there while `late` stays (`Tally`), so
 * nothing has left either where the tally, less what is newer, is what it was.
 */
export class Counts {
  readonly #ladders = new Map<string, Ladder>();

  /** In the transaction that `list` was read in. */
  since(driver: Driver, list: StateList, since: number): number {
    const between = (from: number, to: number): number => countBetween(driver, list, from, to);
    // The numbers of contexts are given again, so nothing is remembered of them.
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

  /** What is known of a list, if it holds; with its top so high that little is newer. */
  #ladder({ id, state, held, tally }: StateList, between: (from: number, to: number) => number): Ladder {
    const { settled, late } = tally;
    const rungAt = (time: number): Rung => ({ time, before: held - between(time, never) });
    const key = `${id}/${stateNumber(state)}`;
    const known = this.#ladders.get(key);
    const newer = known === undefined ? held : between(known.top.time, never);
    if (known === undefined || known.late !== late || held - newer !== known.top.before) {
      const ladder = { late, rungs: [], top: rungAt(settled) };
      if (this.#ladders.size >= mostLadders) this.#ladders.clear();
      this.#ladders.set(key, ladder);
      return ladder;
    }
    if (known.rungs.length >= mostRungs) known.rungs = known.rungs.filter((_rung, at) => at % 2 === 0);
    if (newer > few && settled > known.top.time) {
      known.rungs.push(known.top);
      known.top = rungAt(settled);
    }
    return known;
  }
}

/** From a time on, to before another. */
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
