import type { TaskList } from "@parley/server/internal/operate/port";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isAccepted, operators, read, refusedBy } from "./api.ts";
import { polled } from "./poll.ts";

/** Maximum tasks to count. */
const max = 99;

/** The number of tasks that an operator should look at: suspended tasks, and tasks that failed in the last 24 hours. */
export function Badge() {
  const counts = useSignal<{ readonly suspended: number; readonly failed: number } | undefined>(undefined);
  // Without the credentials, each round would be a rejected request.
  const { bearer = true, basic = true, apiKeys = [] } = operators.value ?? {};
  const mayRead = refusedBy.value === "" && (isAccepted.value || (!bearer && !basic && apiKeys.length === 0));
  useEffect(
    () =>
      mayRead
        ? polled(
            async (isStopped) => {
              try {
                const since = new Date(Date.now() - 86_400_000).toISOString();
                const [suspended, failed] = await Promise.all([
                  count({ suspended: true }),
                  count({ states: "TASK_STATE_FAILED", since }),
                ]);
                if (!isStopped()) counts.value = { suspended, failed };
              } catch {
                // The screen Operate shows the reason.
              }
            },
            { everyMs: 15_000 },
          )
        : undefined,
    [mayRead],
  );
  const { suspended, failed } = counts.value ?? { suspended: 0, failed: 0 };
  if (!mayRead || suspended + failed === 0) return null;
  const text = suspended + failed > max ? `${max}+` : `${suspended + failed}`;
  const parts = [suspended > 0 && `${suspended} suspended`, failed > 0 && `${failed} failed in the last 24 hours`];
  const label = `Tasks: ${parts.filter(Boolean).join(", ")}`;
  return (
    <span class="badge" role="img" aria-label={label} title={label}>
      {text}
    </span>
  );
}

async function count(inputs: Readonly<Record<string, string | boolean>>): Promise<number> {
  return (await read<TaskList>("/v1/tasks", { ...inputs, limit: max + 1 }))?.tasks.length ?? 0;
}
