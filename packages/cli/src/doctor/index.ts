import type { Client, FetchLike } from "@parley/a2a/internal/client/index";
import type { AgentCard, TaskState } from "@parley/a2a/internal/model/index";
import { isTerminal } from "@parley/a2a/model";
import { open, type CallOptions } from "../connection.ts";
import { explain } from "../errors.ts";
import type { Io } from "../io.ts";
import { showFinding, type Finding } from "../output/show.ts";
import { quote } from "../invocation.ts";
import { counted, print } from "../output/text.ts";
import { checkAddresses, checkClients, checkVersions } from "./addresses.ts";
import { checkCard, checkClock, checkTls } from "./server.ts";

interface DoctorOptions extends CallOptions {
  readonly message?: string;
}

/** `parley doctor`. Prints each finding immediately. Returns the exit code. */
export async function doctor(io: Io, at: string, options: DoctorOptions): Promise<number> {
  let broken = 0;
  let warnings = 0;
  for await (const finding of examine(io, at, options)) {
    if (finding.verdict === "broken") broken += 1;
    if (finding.verdict === "warning") warnings += 1;
    print(io, options, finding, (style) => showFinding(finding, style));
  }
  if (options.json !== true) io.stdout.write(`\n${summary(broken, warnings)}\n`);
  return broken === 0 ? 0 : 1;
}

function summary(broken: number, warnings: number): string {
  if (broken > 0) return `${counted(broken, "problem")}, ${counted(warnings, "warning")}.`;
  return warnings > 0 ? `The agent can be called. ${counted(warnings, "warning")}.` : "The agent can be called.";
}

async function* examine(io: Io, at: string, options: DoctorOptions): AsyncGenerator<Finding> {
  yield* checkTls(new URL(at));
  const found = await checkCard(io, at, options);
  yield* found.findings;
  if (found.date !== undefined) yield checkClock(found.date);
  if (found.card === undefined) return;
  const { card } = found;
  yield checkVersions(card);
  yield* checkClients(new URL(at), card);
  let wantsCredentials = false;
  for await (const { finding, refused } of checkAddresses(io, at, card, options)) {
    yield finding;
    wantsCredentials ||= refused;
  }
  if (wantsCredentials) {
    const seen = "not checked: the agent requires credentials";
    const cure = `parley login ${quote(at)}, or pass --token TOKEN, or for an API key --header 'NAME: KEY'`;
    yield { subject: "streams", verdict: "unknown", seen, cure };
  } else {
    yield* checkStreams(io, at, card, options);
  }
}

/** Minimum duration of a task, by its server's clock. Shorter tasks do not show whether events are buffered. */
const minTaskMs = 500;

/** Time limit of the stream. */
const maxStreamMs = 60_000;

/** Checks that events arrive as soon as they are created, and that no proxy buffers them. */
async function* checkStreams(io: Io, at: string, card: AgentCard, options: DoctorOptions): AsyncGenerator<Finding> {
  if (card.capabilities.streaming !== true) {
    yield { subject: "streams", verdict: "unknown", seen: "the card does not declare streaming" };
    return;
  }
  if (options.message === undefined) {
    const cure = "Pass --message TEXT with a message that takes the agent at least a second";
    yield { subject: "streams", verdict: "unknown", seen: "not checked: this needs a task", cure };
    return;
  }
  let encoding: string | undefined;
  const watching: FetchLike = async (url, init) => {
    const response = await fetch(url, init);
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      encoding = response.headers.get("content-encoding") ?? undefined;
    }
    return response;
  };
  try {
    const client = await open(io, at, options, { fetch: watching, retry: false });
    yield verdictOf(await follow(client, options.message));
  } catch (error) {
    const cure = "Check the log of the server, and that the proxy keeps idle connections open for an hour";
    yield { subject: "streams", verdict: "broken", seen: explain(error, { url: at }), cure };
  }
  if (encoding !== undefined && encoding !== "identity") {
    const cure = "Do not compress text/event-stream in the proxy";
    yield {
      subject: "streams",
      verdict: "warning",
      seen: `they are compressed (${encoding}), which delays events`,
      cure,
    };
  }
}

/** When the events of a task were created, by its server's clock, and when they arrived. */
interface Followed {
  readonly events: number;
  /** From the first status to the last, in milliseconds. */
  readonly made: number;
  /** From the first event to the last, in milliseconds. */
  readonly came: number;
  /** Whether the stream ended. */
  readonly whole: boolean;
}

async function follow(client: Client, message: string): Promise<Followed> {
  const came: number[] = [];
  const made: number[] = [];
  let taskId: string | undefined;
  let state: TaskState | undefined;
  const stop = AbortSignal.timeout(maxStreamMs);
  try {
    for await (const { task, statusUpdate } of client.sendStreamingMessage(message, { signal: stop })) {
      came.push(performance.now());
      taskId = task?.id ?? statusUpdate?.taskId ?? taskId;
      const status = (task ?? statusUpdate)?.status;
      state = status?.state ?? state;
      const time = Date.parse(status?.timestamp ?? "");
      if (!Number.isNaN(time)) made.push(time);
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  }
  // Otherwise an unanswered question would keep the task open.
  if (taskId !== undefined && state !== undefined && !isTerminal(state))
    await client.cancelTask(taskId).catch(() => {});
  const span = (times: readonly number[]): number => (times.at(-1) ?? 0) - (times[0] ?? 0);
  return { events: came.length, made: span(made), came: span(came), whole: !stop.aborted };
}

export function verdictOf({ events, made, came, whole }: Followed): Finding {
  const times = `${events} events, made within ${made} ms, received within ${Math.round(came)} ms`;
  if (made < minTaskMs) {
    const seen = `${times}: too fast to show whether a proxy buffers them`;
    const cure = "Send a message that takes the agent at least a second";
    return { subject: "streams", verdict: whole ? "unknown" : "ok", seen, cure };
  }
  if (came >= made / 2) return { subject: "streams", verdict: "ok", seen: times };
  const cure =
    "Disable buffering in the proxy (nginx: proxy_buffering off; without proxy_ignore_headers X-Accel-Buffering)";
  return { subject: "streams", verdict: "broken", seen: `${times}: a proxy buffers them`, cure };
}
