import { A2AError } from "@parley/a2a/internal/model/index";
import { unavailable } from "@parley/server/internal/store/index";
import { sqlState } from "./driver.ts";

/** Conflicts between transactions that run again: a serialization failure and a deadlock (PostgreSQL, Appendix A, class 40). */
export function isConflict(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "40001" || state === "40P01";
}

/** Whether the connection was lost, or there was none: nobody knows what became of the last statement. */
export function isDisconnection(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const state = sqlState(thrown);
  if (state !== undefined) return isEnd(state) || (endsSession(thrown) && !isRefusal(state));
  if ("code" in thrown && typeof thrown.code === "string" && socketErrors.has(thrown.code)) {
    // A file that is not there, such as a certificate, is no socket.
    return thrown.code !== "ENOENT" || ("syscall" in thrown && thrown.syscall === "connect");
  }
  return lostConnection.test(thrown.message);
}

/** Whether the server refused a statement, and goes on: it took no effect, and its transaction takes none. */
export function isAnswer(thrown: unknown): boolean {
  if (sqlState(thrown) === undefined || isDisconnection(thrown)) return false;
  const severity = severityOf(thrown);
  return severity === undefined || severity === "ERROR";
}

/** Whether a statement waited too long for another transaction, or was stopped while it did. */
export function isLocked(thrown: unknown): boolean {
  const state = sqlState(thrown);
  return state === "55P03" || state === "57014";
}

/**
 * 57P01 to 57P05: the server shuts down, has crashed, starts, or ends an idle session. 25P03, 25P04: it ended a session whose
 * transaction was idle or took too long. Class 08: what a pooler says without a server. Not 08P01, a violation of the protocol, which
 * PgBouncer says of everything else: there the severity counts.
 */
function isEnd(state: string): boolean {
  return state.startsWith("08") ? state !== "08P01" : /^(?:57P0[12345]|25P0[34])$/.test(state);
}

/** Users, databases and rights that a server refuses when it is connected to. */
function isRefusal(state: string): boolean {
  return /^(?:28|3D|42|53300)/.test(state);
}

/** The session is over after such an error. */
function endsSession(thrown: unknown): boolean {
  const severity = severityOf(thrown);
  return severity === "FATAL" || severity === "PANIC";
}

/** `ERROR`, `FATAL` or `PANIC`, in the language of the server. `undefined`: the driver does not say. */
function severityOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "severity" in thrown && typeof thrown.severity === "string"
    ? thrown.severity
    : undefined;
}

/** Whether a statement was not answered in time: its connection may be there, or not. */
export function isSilence(thrown: unknown): boolean {
  return thrown instanceof Error && /^(?:Query read timeout|timeout expired)/.test(thrown.message);
}

/** Whether trying again within a few seconds may help: the connection was lost, or the server has no more of them. */
export function isOutage(thrown: unknown): boolean {
  return isDisconnection(thrown) || sqlState(thrown) === "53300";
}

/** Whether the server only reads, such as a replica. After a failover, a new connection may lead to one that writes. */
export function isReadOnly(thrown: unknown): boolean {
  return sqlState(thrown) === "25006";
}

/** Whether the disk of the server is full. */
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
  "ENOENT", // A Unix socket that is not there.
]);

/** Errors of `pg` that have no code. */
const lostConnection =
  /^(?:Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed|The connection ended)/;

/**
 * An error of the driver as one that a client may read. What the server said goes with it as the cause, for the log: messages of a
 * server can have data in them, and those of a connection the address. Errors about the statement itself stay as they are.
 */
export function readable(thrown: unknown): unknown {
  if (thrown instanceof A2AError) return thrown;
  const state = sqlState(thrown);
  const sentence = state === undefined ? undefined : (sentences[state] ?? sentences[state.slice(0, 2)]);
  if (sentence !== undefined) return later(sentence, thrown);
  if (isPlainServer(thrown))
    return unavailable("The server of the database has no TLS, which `sslmode` asks for", thrown);
  if (isCertificateError(thrown)) return unavailable("The certificate of the database is not one to trust", thrown);
  if (isDisconnection(thrown)) return later(unreachable, thrown);
  return isMissingFile(thrown)
    ? unavailable("A file that the URL of the database names is missing, such as `sslrootcert`", thrown)
    : thrown;
}

/** Seconds after which a client may try again: a call has waited for long already. */
const retryAfter = 1;

/** What may be over soon. */
function later(sentence: string, cause: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause, retryAfter });
}

function isMissingFile(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT";
}

/** A certificate that Node refuses. Its codes are those of OpenSSL, and one of its own for names. */
function isCertificateError(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return false;
  return /CERT|LEAF_SIGNATURE|ISSUER/.test(thrown.code);
}

const unreachable = "The database cannot be reached now";

/** What is wrong with a server, by SQLSTATE or by its class. */
const sentences: Readonly<Record<string, string>> = {
  "08": unreachable,
  "25006": "The database is read-only: the server is a replica, or default_transaction_read_only is on",
  "25P03": "The database ended a transaction that waited too long for this program",
  "25P04": "The database ended a transaction that took too long",
  "28": "The database refused the user or its password",
  "3D000": "There is no such database on the server",
  "40": "The database could not serve this together with others at the same time",
  "42501": "The user of the database lacks a privilege",
  "53": "The database is short of resources",
  "53100": "The disk of the database is full",
  "53200": "The database is out of memory",
  "53300": "The database has too many connections",
  "55P03": "The database was busy for too long with something else",
  "57": "The database stopped this statement",
  "57014": "The database took too long for this statement",
  "57P01": "The database is shutting down",
  "57P02": "The database has crashed, and starts again",
  "57P03": "The database does not accept connections now: it is starting or stopping",
  "57P04": "The database was dropped",
  "57P05": "The database ended a session that was idle for too long",
  "58": "The database had an error of its system",
  XX: "The database has damaged data or an internal error",
};

/** A pooler that takes no time limits with a new connection. */
export function isRefusedSetting(thrown: unknown): boolean {
  return some(thrown, ({ message }) => message.includes("unsupported startup parameter"));
}

/** A server without TLS. */
export function isPlainServer(thrown: unknown): boolean {
  return some(thrown, ({ message }) => message.includes("The server does not support SSL connections"));
}

function some(thrown: unknown, fits: (error: Error) => boolean): boolean {
  return thrown instanceof Error && (fits(thrown) || some(thrown.cause, fits));
}
