import { setTimeout as pause } from "node:timers/promises";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import type { Counts, OperatedNode } from "@parley/server/internal/operate/port";
import type { Io } from "./io.ts";
import { countsText, isPassing, nodesText } from "./ops.ts";
import { asking, type OpsOptions } from "./stores.ts";

/* `parley top`: a live view of the servers. */

interface TopOptions extends OpsOptions {
  readonly interval: number;
  readonly once?: boolean;
}

interface View {
  readonly time: string;
  readonly counts: Counts;
  readonly nodes: readonly OperatedNode[];
  /** Tasks that ended per second since the previous view. Absent in the first one. */
  readonly endedPerSecond?: number;
}

const terminal: readonly string[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

/** On a terminal, redraws the view in place. Otherwise prints each view as a line of JSON. */
export async function top(io: Io, options: TopOptions): Promise<number> {
  const isDrawn = io.stdout.terminal && options.json !== true;
  let isOver = false;
  const ended = new AbortController();
  const forget = io.onInterrupt(() => {
    isOver = true;
    ended.abort();
  });
  try {
    return await asking(io, options, async (ask) => {
      let before: View | undefined;
      for (;;) {
        try {
          const counts = await ask<Counts>("countTasks");
          const answer = await ask<{ readonly nodes: readonly OperatedNode[] }>("listNodes");
          if (counts !== undefined && answer !== undefined) {
            const view = viewOf(counts, answer.nodes, before);
            io.stdout.write(isDrawn ? drawn(view, options.once === true) : `${jsonLine(view)}\n`);
            before = view;
          }
        } catch (error) {
          // A restarting server is soon available again.
          if (options.once === true || before === undefined || !isPassing(error)) throw error;
          io.stderr.write(`parley: ${line(error instanceof Error ? error.message : String(error))}; retrying\n`);
        }
        if (options.once === true || isOver) return 0;
        await pause(options.interval * 1000, undefined, { signal: ended.signal }).catch(() => undefined);
        if (isOver) return 0;
      }
    });
  } finally {
    forget();
  }
}

function viewOf(counts: Counts, nodes: readonly OperatedNode[], before: View | undefined): View {
  const time = new Date().toISOString();
  if (before === undefined) return { time, counts, nodes };
  const seconds = (Date.parse(time) - Date.parse(before.time)) / 1000;
  // Retention may have deleted tasks meanwhile, so the count can decrease.
  const ended = Math.max(0, endedIn(counts) - endedIn(before.counts));
  return { time, counts, nodes, endedPerSecond: seconds > 0 ? Math.round((ended / seconds) * 10) / 10 : 0 };
}

function endedIn({ states }: Counts): number {
  return Object.entries(states).reduce((sum, [state, count]) => sum + (terminal.includes(state) ? count : 0), 0);
}

function drawn({ time, counts, nodes, endedPerSecond }: View, isOnce: boolean): string {
  const rate = endedPerSecond === undefined ? "" : `  ended ${endedPerSecond}/s`;
  const text = `parley top  ${time}${rate}\n\n${nodesText(nodes)}\n${countsText(counts)}`;
  // Moves to the top left, and clears the screen.
  return isOnce ? text : `\u001b[H\u001b[2J${text}`;
}
