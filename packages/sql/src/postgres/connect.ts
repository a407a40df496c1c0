import { isIP } from "node:net";
import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import { unavailable } from "@parley/server/internal/store/index";
import { openDatabase, type Database } from "./database.ts";
import type { PostgresDriver } from "./driver.ts";
import { isPlainServer, isRefusedSetting } from "./errors.ts";
import { answerMargin, checkLimits, limitAlone, silenceAfter } from "./patience.ts";
import { poolDriver, type PoolDriverOptions, type PoolLike } from "./pool.ts";

/** Options for connecting to a database. */
export interface PostgresConnectOptions {
  /**
   * A URL, such as `postgres://user:password@host:5432/database?sslmode=verify-full`; a `Pool` of `pg`, which stays open when the store
   * is closed; or an adapter to another library.
   */
  readonly database: string | PoolLike | PostgresDriver;
  /** Maximum number of connections if `database` is a URL. Wake-ups and heartbeats use one of the connections. Default 10. */
  readonly connections?: number;
  /** Maximum milliseconds to open a connection. If `database` is a pool with its own limit, that limit applies. Default 5000. */
  readonly connectTimeout?: number;
  /** Milliseconds after which the server stops a statement. Default 10000. */
  readonly statementTimeout?: number;
  /** Maximum milliseconds that a statement waits for a lock. Default 5000. */
  readonly lockTimeout?: number;
  /**
   * Milliseconds for which a call is retried before it fails as `Unavailable`, while the database is unreachable, restarts, is read-only
   * or has too many connections. Opening the store does not retry. Default 10000.
   */
  readonly outageTimeout?: number;
  /** Default: silent. */
  readonly logger?: Logger;
}

/** Opens a database. Rejects with an `A2AError` of code `Unavailable`. */
export async function connect(options: PostgresConnectOptions): Promise<Database> {
  const { statementTimeout = 10_000, lockTimeout = 5000, outageTimeout = 10_000, logger = silentLogger } = options;
  const { connections = 10, connectTimeout = 5000 } = options;
  checkLimits({ statementTimeout, lockTimeout, outageTimeout, connectTimeout });
  if (!(Number.isInteger(connections) && connections >= 1))
    throw unavailable(`connections must be an integer of at least 1; got ${String(connections)}`);
  const settings = { connections, connectTimeout, statementTimeout, lockTimeout, outageTimeout, logger };
  const { database } = options;
  if (typeof database === "string") return connectTo(database, settings);
  // The value is a pool, or an adapter, which has `hold`.
  const driver = "hold" in database ? database : poolDriver(database, { ...poolSettings(settings), owned: false });
  return openOr(driver, settings);
}

type Settings = Required<Omit<PostgresConnectOptions, "database">>;

function poolSettings({
  connectTimeout,
  statementTimeout,
  outageTimeout,
  logger,
}: Settings): Omit<PoolDriverOptions, "owned"> {
  return {
    silence: Math.min(silenceAfter(statementTimeout), outageTimeout + answerMargin),
    connectTimeout,
    // The error contains the client, with its keys and sockets.
    onIdleError: (error) => logger.debug("PostgreSQL: idle connection closed", factsOf(error)),
  };
}

/** The parts of a `pg` error that may be logged. */
function factsOf(error: Error): { readonly message: string; readonly code?: string } {
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return { message: error.message, ...(code !== undefined && { code }) };
}

async function openOr(driver: PostgresDriver, settings: Settings): Promise<Database> {
  try {
    return await openDatabase(driver, settings);
  } catch (thrown) {
    await driver.close().catch(() => undefined);
    // Other errors of `pg` may contain the URL, so only their name and code are logged.
    throw thrown instanceof A2AError ? thrown : unavailable(`The database cannot be opened${nameOf(thrown)}`);
  }
}

function nameOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "";
  return ` (${[thrown.name, factsOf(thrown).code].filter(Boolean).join(" ")})`;
}

async function connectTo(url: string, options: Settings): Promise<Database> {
  const { Pool } = await loadPg();
  const { connections, connectTimeout, statementTimeout, lockTimeout, outageTimeout, logger } = options;
  const target = readUrl(url);
  // These limits are for single statements. Transactions set their own limits.
  const limits = {
    statement_timeout: limitAlone(statementTimeout, outageTimeout),
    lock_timeout: limitAlone(lockTimeout, outageTimeout),
  };
  const open = (connectionString: string, more: object): Promise<Database> => {
    const pool = new Pool({
      connectionString,
      ...more,
      max: connections,
      connectionTimeoutMillis: connectTimeout,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      // Detects a lost network within seconds, even during a statement without a timeout.
      keepAliveInitialDelayMillis: 10_000,
      fallback_application_name: "parley",
      pipeline: true,
    });
    return openOr(poolDriver(pool, { ...poolSettings(options), owned: true }), options);
  };
  let more: object = limits;
  let { connectionString } = target;
  for (;;) {
    try {
      return await open(connectionString, more);
    } catch (thrown) {
      if (more === limits && isRefusedSetting(thrown)) {
        logger.info(
          "PostgreSQL: the pooler rejects timeout settings; statements outside transactions have client-side timeouts only",
        );
        more = {};
      } else if (connectionString === target.connectionString && target.prefersTls && isPlainServer(thrown)) {
        logger.warn(
          "PostgreSQL: the server does not support TLS; the connection is not encrypted. Set sslmode=disable to accept this",
        );
        connectionString = withoutTls(url);
      } else throw thrown;
    }
  }
}

interface PgModule {
  readonly Pool: new (config: object) => PoolLike;
}

async function loadPg(): Promise<PgModule> {
  try {
    const { default: pg } = await import("pg");
    return pg;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code !== "ERR_MODULE_NOT_FOUND" || !String(cause).includes("'pg'")) throw cause;
    throw unavailable("The driver pg is not installed: `npm install pg`", cause);
  }
}

export interface Target {
  /** The URL for `pg`. */
  readonly connectionString: string;
  /** Whether TLS is optional: `sslmode=prefer`, or a remote host and no `sslmode`. */
  readonly prefersTls: boolean;
}

/**
 * Reads `sslmode` as PostgreSQL's own clients do (libpq, §34.19): `disable`, `prefer`, `require`, `verify-ca`, `verify-full`. `pg` 8
 * gives them other meanings and has no fallback for `prefer`. Default: `disable` for this machine, else `prefer`.
 *
 * @throws A2AError `Unavailable`, without the URL, which contains the password.
 */
export function readUrl(url: string): Target {
  const parsed = parse(url);
  const { searchParams } = parsed;
  refuseUnknown(searchParams);
  // Options that enable TLS without `sslmode`.
  const own = searchParams.has("ssl") || searchParams.get("sslnegotiation") === "direct";
  const mode = searchParams.get("sslmode") ?? (own ? undefined : isLocal(parsed) ? "disable" : "prefer");
  if (mode === "allow") throw refused("sslmode=allow is not supported; use sslmode=prefer");
  // `no-verify` is a value of `pg` alone.
  if (mode !== undefined && mode !== "no-verify") {
    if (!modes.has(mode)) throw refused("its sslmode is not one of PostgreSQL");
    searchParams.set("sslmode", mode);
    searchParams.set("uselibpqcompat", "true");
    // Node's default certificates replace the system's.
    if (searchParams.get("sslrootcert") === "system") {
      searchParams.delete("sslrootcert");
      searchParams.set("sslmode", "verify-full");
    }
  }
  return { connectionString: parsed.href, prefersTls: mode === "prefer" };
}

function withoutTls(url: string): string {
  const parsed = parse(url);
  parsed.searchParams.set("sslmode", "disable");
  return parsed.href;
}

/** Rejects libpq settings that `pg` ignores, because the program would connect to a server other than the one in the URL. */
function refuseUnknown(searchParams: URLSearchParams): void {
  for (const name of ["target_session_attrs", "hostaddr", "load_balance_hosts", "service"]) {
    if (searchParams.has(name)) throw refused(`pg does not support ${name}`);
  }
}

const modes: ReadonlySet<string> = new Set(["disable", "prefer", "require", "verify-ca", "verify-full"]);

function parse(url: string): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
    // `pg` decodes them, and its error does not name the URL.
    for (const part of [parsed.hostname, parsed.username, parsed.password, parsed.pathname]) decodeURIComponent(part);
  } catch {
    throw refused("it is not a URL");
  }
  if (parsed.host.includes(",") || parsed.searchParams.get("host")?.includes(","))
    throw refused("it has several hosts");
  if (!/^postgres(?:ql)?:$/.test(parsed.protocol)) throw refused("it must begin with postgres:// or postgresql://");
  return parsed;
}

function refused(reason: string): A2AError {
  return new A2AError("Unavailable", `The URL of the database cannot be used: ${reason}`);
}

/** A Unix socket, or an address of this machine. */
function isLocal({ hostname, searchParams }: URL): boolean {
  const host = searchParams.get("host") ?? decodeURIComponent(hostname);
  if (host === "" || host.startsWith("/") || host === "localhost") return true;
  const address = host.replace(/^\[(.*)\]$/, "$1");
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
