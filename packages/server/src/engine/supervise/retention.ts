import { defer, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import type { TaskState } from "@parley/a2a/internal/model/index";
import type { SweepOptions, SweepRule } from "../../store/index.ts";
import type { TaskTimes } from "../shared/options.ts";
import type { EngineSettings } from "../shared/settings.ts";
import { safeSentences } from "../run/index.ts";
import type { Runs } from "./runs.ts";

const sweepLimit = 100;

/** The states that can have their own retention time, each with the name of its option. */
const terminalStates: readonly (readonly [keyof TaskTimes, TaskState])[] = [
  ["completed", "TASK_STATE_COMPLETED"],
  ["failed", "TASK_STATE_FAILED"],
  ["canceled", "TASK_STATE_CANCELED"],
  ["rejected", "TASK_STATE_REJECTED"],
];

const askingStates: typeof terminalStates = [
  ["inputRequired", "TASK_STATE_INPUT_REQUIRED"],
  ["authRequired", "TASK_STATE_AUTH_REQUIRED"],
];

function before(now: number, time: number | false): number {
  return time === false ? -Infinity : now - time;
}

/** The times of agents and states as rules, in order of precedence: agent and state, agent, state. */
function rulesOf({ agents = {}, ...all }: EngineSettings["retention"], now: number): readonly SweepRule[] {
  const ofStates = (times: TaskTimes, agent?: string): SweepRule[] =>
    terminalStates.flatMap(([option, state]) => {
      const time = times[option];
      if (time === undefined) return [];
      return [{ ...(agent !== undefined && { agent }), state, deleteBefore: before(now, time) }];
    });
  const own = Object.entries(agents).flatMap(([agent, times]) => [
    ...ofStates(times, agent),
    ...(times.terminal === undefined ? [] : [{ agent, deleteBefore: before(now, times.terminal) }]),
  ]);
  return [...own, ...ofStates(all)];
}

/** If the wall clock gains more than this on the monotonic clock, in milliseconds, it was set ahead. */
const tolerance = 60_000;
/** How long a jump ahead of the wall clock is ignored, in milliseconds on the monotonic clock. */
const holdTime = 60 * 60_000;

/** The clock of retention. For a while, it ignores a wall clock that jumped ahead, because deletion is permanent. */
export class SweepTime {
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The trusted difference between wall time and monotonic time. */
  #distance: number;
  /** A larger difference than `#distance`, and since when it has been observed. */
  #ahead: { readonly distance: number; readonly since: number } | undefined;

  constructor({ clock, logger }: Pick<EngineSettings, "clock" | "logger">, distance: number) {
    this.#clock = clock;
    this.#logger = logger;
    this.#distance = distance;
  }

  now(): number {
    const elapsed = this.#clock.elapsed();
    const distance = this.#clock.now() - elapsed;
    const ahead = distance - this.#distance;
    const isHeld = this.#ahead !== undefined && Math.abs(distance - this.#ahead.distance) <= tolerance;
    if (ahead > tolerance && !isHeld) {
      this.#ahead = { distance, since: elapsed };
      const what = "Wall clock jumped ahead; retention ignores the jump for an hour";
      this.#logger.warn(what, { ahead: Math.round(ahead) });
    } else if (ahead <= tolerance || elapsed - (this.#ahead?.since ?? elapsed) >= holdTime) {
      this.#distance = distance;
      this.#ahead = undefined;
    }
    return this.#distance + elapsed;
  }
}

export async function sweepAll(
  { store, retention }: EngineSettings,
  now: number,
  isOver: () => boolean,
): Promise<void> {
  const { terminal, replay } = retention;
  const rules = rulesOf(retention, now);
  const options: SweepOptions = {
    now,
    limit: sweepLimit,
    ...(terminal !== false && { deleteBefore: now - terminal }),
    ...(rules.length > 0 && { rules }),
    ...(replay !== false && { compactBefore: now - replay }),
  };
  for (let more = true; more && !isOver();) {
    ({ more } = await store.sweep(options));
    // Let the event loop read requests between two calls.
    if (more) await new Promise<void>((resolve) => defer(resolve));
  }
}

interface Unanswered {
  readonly settings: EngineSettings;
  readonly runs: Pick<Runs, "endTask">;
  readonly agents: ReadonlyMap<string, unknown>;
  readonly now: number;
  isOver(): boolean;
}

/** Cancels tasks that wait too long for their user. Later they are deleted like other canceled tasks. */
export async function cancelUnanswered({ settings, runs, agents, now, isOver }: Unanswered): Promise<void> {
  const { store, retention } = settings;
  const message = { parts: [{ text: safeSentences.unanswered }] };
  for (const agent of agents.keys()) {
    for (const [option, state] of askingStates) {
      const time = retention.agents?.[agent]?.[option] ?? retention[option] ?? false;
      if (time === false || store.upkeep === undefined) continue;
      const selection = { agent, states: [state], before: now - time };
      for (let more = true; more && !isOver();) {
        const found = await store.upkeep.find(selection, sweepLimit);
        let ended = 0;
        for (const head of found) {
          // Cancel only an unchanged task, because an answer that arrives first takes precedence.
          const only = { fence: head.fence, seq: head.seq };
          if (await runs.endTask(head, { state: "TASK_STATE_CANCELED", message }, only)) ended += 1;
        }
        more = found.length === sweepLimit && ended > 0;
      }
    }
  }
}
