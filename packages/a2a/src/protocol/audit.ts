import type { Logger, LogFields } from "../base/index.ts";
import { invalidParams, type A2AErrorCode, type TaskState } from "../model/index.ts";
import type { OperationName } from "./operations.ts";
import type { Principal } from "./service.ts";

/** An audit entry: who did what to which task, with which result. It never contains a credential or the content of a message. */
export interface AuditRecord {
  /**
   * What happened.
   * - `authentication`: a caller was rejected, because it did not authenticate. With a `subject`: the caller authenticated, but
   *   also sent wrong credentials.
   * - `authorization`: an authenticated caller was rejected.
   * - `limit`: a caller was rejected because of a limit.
   * - `task-created`, `task-state`: a task was created, or changed its state.
   * - `credential`: an agent got or used a credential, or a server sent one.
   * - `administration`: an operator changed something.
   * - `action`: an agent recorded an action (`turn.audit()`).
   */
  readonly event:
    | "authentication"
    | "authorization"
    | "limit"
    | "task-created"
    | "task-state"
    | "credential"
    | "administration"
    | "action";
  /** Whether it succeeded, was refused, or failed. */
  readonly outcome: "success" | "refused" | "failed";
  /** When, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** The subject of the principal. Absent: unknown caller. */
  readonly subject?: string;
  /** The organization of the principal. */
  readonly organization?: string;
  /** The IP address of the caller, if the host knows it. */
  readonly address?: string;
  /** The id of the agent. */
  readonly agent?: string;
  /** The operation that was called. */
  readonly operation?: OperationName;
  /** The task. */
  readonly taskId?: string;
  /** The context of the task. For a rejected caller: the context that the request names. */
  readonly contextId?: string;
  /** The state that the task has now. */
  readonly state?: TaskState;
  /** Trace id of the call (W3C Trace Context), 32 hexadecimal digits. */
  readonly traceId?: string;
  /** Code of the error that the caller got. */
  readonly code?: A2AErrorCode;
  /** The exact action, as a fixed name: `push.retry`, `authorize.callback`. */
  readonly action?: string;
  /** Facts about an action of an agent, as reported by the agent. */
  readonly details?: AuditDetails;
}

/** Facts about an action, by name. */
export type AuditDetails = Readonly<Record<string, string | number | boolean>>;

/** Receives audit records, in the order of the events. Its errors are only logged. */
export type Audit = (record: AuditRecord) => void;

/**
 * Writes audit records to a log, each as one line of the level `info` with the message `Audit`.
 *
 * @example
 * ```ts
 * const logger = standardLogger();
 * await serve(agent, { logger, audit: auditLog(logger) });
 * ```
 */
export function auditLog(logger: Logger): Audit {
  return (record) => logger.info("Audit", { ...record });
}

/** Wraps an audit so that its errors are logged. Throws `InvalidParams` unless it is a function. */
export function safeAudit(audit: Audit, logger: Logger): Audit {
  if (typeof audit !== "function") {
    throw invalidParams([{ field: "audit", description: "must be a function, such as auditLog(logger)" }]);
  }
  const failed = (cause: unknown): void => logger.error("An audit record could not be written", { cause });
  return (record) => {
    try {
      const result: unknown = audit(record);
      // An async function fits the type. Without a handler its rejection would end the process.
      if (result instanceof Promise) result.catch(failed);
    } catch (cause) {
      failed(cause);
    }
  };
}

/** The caller and the task of an audit record. */
interface AuditSubject {
  /** The caller. Absent: it is not known. */
  readonly principal?: Pick<Principal, "subject" | "organization"> | undefined;
  /** IP address of the caller. */
  readonly address?: string | undefined;
  /** The task. */
  readonly taskId?: string | undefined;
  /** Its context. */
  readonly contextId?: string | undefined;
  /** W3C `traceparent` of the call. It is not trusted, so only the trace id is used. */
  readonly trace?: string | undefined;
}

/** The caller, agent and task of an audit record. */
export function auditedSubject({
  principal,
  address,
  ...about
}: AuditSubject): Pick<AuditRecord, "subject" | "organization" | "address" | "taskId" | "contextId" | "traceId"> {
  const { subject, organization } = principal ?? {};
  return {
    ...(subject !== undefined && { subject: subject.slice(0, longestName) }),
    ...(organization !== undefined && { organization: organization.slice(0, longestName) }),
    ...(address !== undefined && { address }),
    ...taskFields(about),
  };
}

/** The task of a log line. */
interface LoggedTask {
  /** The id of the agent. */
  readonly agent?: string | undefined;
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
  /** W3C `traceparent` of the call. It is not trusted, so only the trace id is used. */
  readonly trace?: string | undefined;
}

/** Maximum length of a name in a log line or an audit record, in characters, because callers choose the ids that they request. */
export const longestName = 256;

/** The fields of every log line about a task. A line omits unknown ones. */
export function taskFields({ agent, taskId, contextId, trace }: LoggedTask): LogFields {
  const traceId = traceIdOf(trace);
  return {
    ...(agent !== undefined && { agent }),
    ...(taskId !== undefined && { taskId: taskId.slice(0, longestName) }),
    ...(contextId !== undefined && { contextId: contextId.slice(0, longestName) }),
    ...(traceId !== undefined && { traceId }),
  };
}

/** The trace id of a `traceparent` (W3C Trace Context §3.2.2.3); `undefined` if it is absent or invalid. */
function traceIdOf(trace: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-/.exec(trace ?? "")?.[1];
}
