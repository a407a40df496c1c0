import type { LogFields } from "../base/index.ts";

/** What a log line is about. */
interface LoggedTask {
  /** The id of the agent. */
  readonly agent?: string | undefined;
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
  /** W3C `traceparent` of the call. Anybody may have written it, so only a trace id is taken from it. */
  readonly trace?: string | undefined;
}

/** Longest name in a log line or an audit record, in characters: callers choose the ids that they ask for. */
export const longestName = 256;

/** The fields of a log line about a task. Every such line has them, as far as they are known. */
export function taskFields({ agent, taskId, contextId, trace }: LoggedTask): LogFields {
  const traceId = traceIdOf(trace);
  return {
    ...(agent !== undefined && { agent }),
    ...(taskId !== undefined && { taskId: taskId.slice(0, longestName) }),
    ...(contextId !== undefined && { contextId: contextId.slice(0, longestName) }),
    ...(traceId !== undefined && { traceId }),
  };
}

/** The trace id of a `traceparent` (W3C Trace Context §3.2.2.3); `undefined` if there is none, or if it is not valid. */
function traceIdOf(trace: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-/.exec(trace ?? "")?.[1];
}
