import { A2AError } from "@parley/a2a/internal/model/index";
import { unavailable } from "@parley/server/internal/store/index";
import { sqlState } from "./driver.ts";

/** Conflicts after which a transaction is retried: serialization failures and deadlocks (PostgreSQL, Appendix A, class 40). */
export function isConflict(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "40001" || state === "40P01";
}

/** Whether the connection was lost or never established. The outcome of the last statement is then unknown. */
export function isDisconnection(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const state = sqlState(thrown);
  if (state !== undefined) return isEnd(state) || (endsSession(thrown) && !isRefusal(state));
  if ("code" in thrown && typeof thrown.code === "string" && socketErrors.has(thrown.code)) {
    // A missing file, such as a certificate, is not a lost connection. A missing Unix socket is.
    return thrown.code !== "ENOENT" || ("syscall" in thrown && thrown.syscall === "connect");
  }
  return lostConnection.test(thrown.message);
}

/** Whether the server rejected a statement: neither the statement nor its transaction takes effect. */
export function isAnswer(thrown: unknown): boolean {
  if (sqlState(thrown) === undefined || isDisconnection(thrown)) return false;
  const severity = severityOf(thrown);
  return severity === undefined || severity === "ERROR";
}

/** Whether a statement timed out, or waited too long for a lock. */
export function isLocked(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "55P03" || state === "57014";
}

/**
 * 57P01 to 57P05: the server shuts down, crashed, starts, or ends an idle session. 25P03, 25P04: a transaction was idle or took too
 * long. Class 08: a pooler has no server. PgBouncer uses 08P01 for all other errors, so the severity decides.
 */
function isEnd(state: string): boolean {
  return state.startsWith("08") ? state !== "08P01" : /^(?:57P0[12345]|25P0[34])$/.test(state);
}

/** Rejected users, databases and rights when connecting. */
function isRefusal(state: string): boolean {
  return /^(?:28|3D|42|53300)/.test(state);
}

/** The session is over after such an error. */
function endsSession(thrown: unknown): boolean {
  const severity = severityOf(thrown);
  return severity === "FATAL" || severity === "PANIC";
}

/** `ERROR`, `FATAL` or `PANIC`. `undefined` if the driver does not say. */
function severityOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "severity" in thrown && typeof thrown.severity === "string"
    ? thrown.severity
    : undefined;
}

/** Whether a statement was not answered in time. The connection may be alive. */
export function isSilence(thrown: unknown): boolean {
  return thrown instanceof Error && /^(?:Query read timeout|timeout expired)/.test(thrown.message);
}

/** Whether a retry within seconds may help, because the connection was lost or the server has too many connections. */
export function isOutage(thrown: unknown): boolean {
  return isDisconnection(thrown) || sqlState(thrown) === "53300";
}

/** Whether the server is read-only, such as a replica. After a failover, a new connection may lead to a primary. */
export function isReadOnly(thrown: unknown): boolean {
  return sqlState(thrown) === "25006";
}

export function isFullDisk(thrown: unknown): boolean {
  return sqlState(thrown) === "53100";
}

const socketErrors: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT", // A missing Unix socket.
]);

/** Messages of `pg` errors that have no code. */
const lostConnection =
  /^(?:Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed|The connection ended)/;

/**
 * The error for clients, with the driver's error only as its cause, because server messages can contain data, and connection errors can
 * contain the address. Errors about the statement itself pass through.
 */
export function readable(thrown: unknown): unknown {
  if (thrown instanceof A2AError) return thrown;
  const state = sqlState(thrown);
  const sentence = state === undefined ? undefined : (sentences[state] ?? sentences[state.slice(0, 2)]);
  if (sentence !== undefined) return later(sentence, thrown);
  if (isPlainServer(thrown))
    return unavailable("sslmode requires TLS, but the database server does not support it", thrown);
  if (isCertificateError(thrown)) return unavailable("The certificate of the database server is not trusted", thrown);
  if (isDisconnection(thrown)) return later(unreachable, thrown);
  return isMissingFile(thrown)
    ? unavailable("A file named in the database URL does not exist, such as `sslrootcert`", thrown)
    : thrown;
}

/** Seconds after which a client should retry. Short, because the call has already waited long. */
const retryAfter = 1;

function later(sentence: string, cause: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause, retryAfter });
}

function isMissingFile(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT";
}

/** Whether Node rejected a certificate. The list has OpenSSL's codes and Node's code for host names. */
function isCertificateError(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return false;
  return /CERT|LEAF_SIGNATURE|ISSUER/.test(thrown.code);
}

const unreachable = "The database cannot be reached now";

/** Messages by SQLSTATE or its class. */
const sentences: Readonly<Record<string, string>> = {
  "08": unreachable,
  "25006": "The database is read-only: the server is a replica, or default_transaction_read_only is on",
  "25P03": "The database ended a transaction that was idle for too long",
  "25P04": "The database ended a transaction that took too long",
  "28": "The database refused the user or its password",
  "3D000": "There is no such database on the server",
  "40": "The transaction conflicted with others too often",
  "42501": "The user of the database lacks a privilege",
  "53": "The database lacks resources",
  "53100": "The disk of the database is full",
  "53200": "The database is out of memory",
  "53300": "The database has too many connections",
  "55P03": "The database could not acquire a lock in time",
  "57": "The database stopped this statement",
  "57014": "The database took too long for this statement",
  "57P01": "The database is shutting down",
  "57P02": "The database crashed and is restarting",
  "57P03": "The database does not accept connections: it is starting or stopping",
  "57P04": "The database was dropped",
  "57P05": "The database closed an idle session",
  "58": "The database server reported a system error",
  XX: "The database reported corrupt data or an internal error",
};

/** Whether a pooler rejected a connection because of its timeout settings. */
export function isRefusedSetting(thrown: unknown): boolean {
  return some(thrown, ({ message }) => message.includes("unsupported startup parameter"));
}

/** Whether the server does not support TLS. */
export function isPlainServer(thrown: unknown): boolean {
  return some(thrown, ({ message }) => message.includes("The server does not support SSL connections"));
}

function some(thrown: unknown, fits: (error: Error) => boolean): boolean {
  return thrown instanceof Error && (fits(thrown) || some(thrown.cause, fits));
}
