import type { TaskHead } from "../../store/index.ts";
import { statusRecord } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import { safeSentences } from "../run/index.ts";
import type { Runs } from "./runs.ts";

/** Fails a lost task that cannot go on, with a sentence that its user reads: nothing stays WORKING for ever. */
export async function giveUp(
  settings: Pick<EngineSettings, "clock" | "logger">,
  runs: Pick<Runs, "endTask">,
  head: TaskHead,
  sentence: string,
  cause?: unknown,
): Promise<void> {
  const { turn = 1, attempt = 1 } = head.run ?? {};
  const { taskId } = head.task;
  const origin = { taskId, contextId: head.contextId, turn, attempt, extensions: [], trace: undefined };
  const status = { state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } } as const;
  const time = Math.max(settings.clock.now(), head.statusTime);
  const record = statusRecord(origin, status, "system", `${taskId}-${turn}-system`, time);
  log(settings, head, sentence, cause);
  // Under the fence that was seen: the run may have ended its turn, or another process may have taken it over.
  await runs.endTask(head, record, head.fence);
}

function log({ logger }: Pick<EngineSettings, "logger">, head: TaskHead, sentence: string, cause: unknown): void {
  const { task, run, holder } = head;
  const { agent, taskId } = task;
  if (sentence === safeSentences.fatal) {
    const { deaths = 0 } = run ?? {};
    logger.error("A task was given up: the process ended each time it was started", { agent, taskId, deaths });
  } else if (cause !== undefined) {
    logger.error("A lost task was given up: it cannot be read", { agent, taskId, cause });
  } else logger.warn("A task was lost", { agent, taskId, holder, sentence });
}
