import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { reservePort } from "../ports.ts";
import { sharedFolder } from "../temporary.ts";
import { findBinaries } from "./binaries.ts";
import { tie, until } from "./tie.ts";

export interface PostgresServerOptions {
  /** Settings of the server, such as `{ max_connections: "20" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A certificate and its key, in PEM: the server then has TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Where its files are. Default: in memory, if there is room. */
  readonly parent?: string;
  /** A server whose replica it is: it has a copy of its files, and follows its commits until it is promoted. */
  readonly replicaOf?: PostgresServer;
  /** Whose programs it is, as `PARLEY_POSTGRES` says it. */
  readonly programs?: string;
}

/** A PostgreSQL server of its own, with the durability of production: `fsync` is on. */
export interface PostgresServer {
  /** The URL of its first database, as its superuser. The port stays the same after a restart. */
  readonly url: string;
  readonly port: number;
  /** The process. */
  readonly pid: number;
  /** Where its programs are from. */
  readonly source: string;
  /** Its files, which go when it is removed. */
  readonly folder: string;
  /** Starts it again. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Ends it as an operator does: transactions are rolled back, connections closed. */
  stop(): Promise<void>;
  /** Ends all of its processes at once: it recovers from its log when it starts. */
  crash(): Promise<void>;
  /** Stops it, and removes its files. */
  remove(): Promise<void>;
}

/** The password of every user that a test creates. */
export const password = "secret-of-postgres-0123456789";

/** Starts a server. It ends with `remove()`; a process that ends without takes it along. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const user = unprivileged();
  const folder = mkdtempSync(join(options.parent ?? sharedFolder(), "parley-postgres-"));
  const clean = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  let child: ChildProcess | undefined;
  const onExit = (): void => {
    child?.kill("SIGQUIT");
    clean();
  };
  process.once("exit", onExit);
  let letGo: (() => void) | undefined;
  const ended = async (signal: NodeJS.Signals): Promise<void> => {
    await end(child, signal);
    letGo?.();
  };
  try {
    if (user) chownSync(folder, user.uid, user.gid);
    const { folder: programs, source } = await findBinaries(join(folder, "native"), options.programs);
    const data = join(folder, "data");
    const { replicaOf } = options;
    if (replicaOf) await copyOf(replicaOf, data);
    else await initialize(programs, data, folder, user);
    const port = await reservePort();
    const settings = settingsOf(options, port, folder, user);
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;

    const server: PostgresServer = {
      url,
      port,
      source,
      folder,
      get pid() {
        if (child?.pid === undefined) throw new Error("The server does not run");
        return child.pid;
      },
      async start() {
        child = spawn(join(programs, "postgres"), ["-D", data, ...settings], {
          ...user,
          cwd: folder,
          stdio: ["ignore", "ignore", openSync(join(folder, "log"), "a")],
        });
        letGo = tie(child.pid, "QUIT", folder);
        await accepts(url, child, join(folder, "log"));
      },
      stop: () => ended("SIGINT"),
      crash: () => ended("SIGQUIT"),
      async remove() {
        await ended("SIGQUIT");
        process.off("exit", onExit);
        clean();
      },
    };
    await server.start();
    return server;
  } catch (thrown) {
    process.off("exit", onExit);
    await ended("SIGQUIT");
    clean();
    throw thrown;
  }
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** The user of the server: PostgreSQL refuses to run as root. `undefined`: as this process. */
export function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  const line = ["postgres:", "nobody:"].map((name) => users.find((user) => user.startsWith(name))).find(Boolean);
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined) throw new Error("PostgreSQL refuses to run as root, and there is no user postgres or nobody");
  return { uid: Number(uid), gid: Number(gid) };
}

async function initialize(programs: string, data: string, cwd: string, user: User | undefined): Promise<void> {
  const file = join(cwd, "password");
  writeFileSync(file, password);
  if (user) chownSync(file, user.uid, user.gid);
  const users = ["--username=postgres", `--pwfile=${file}`, "--auth=scram-sha-256"];
  // The files of the cluster are not synced, since nothing is in them. Those of the server are.
  const args = ["-D", data, ...users, "--encoding=UTF8", "--locale=C", "--no-sync"];
  await promisify(execFile)(join(programs, "initdb"), args, { ...user, cwd });
}

/** A backup of a server that runs, as the base of a replica (PostgreSQL §26.3.3). */
async function copyOf(primary: PostgresServer, data: string): Promise<void> {
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('replica', true)");
    // With its owners and rights.
    await promisify(execFile)("cp", ["-a", join(primary.folder, "data"), data]);
    const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
    rmSync(join(data, "postmaster.pid"));
    writeFileSync(join(data, "backup_label"), rows[0]?.labelfile ?? "");
    writeFileSync(join(data, "standby.signal"), "");
    const user = unprivileged();
    if (user) for (const name of ["backup_label", "standby.signal"]) chownSync(join(data, name), user.uid, user.gid);
  } finally {
    await client.end();
  }
}

function settingsOf(options: PostgresServerOptions, port: number, folder: string, user: User | undefined): string[] {
  const { settings = {}, tls } = options;
  const all: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: process.platform === "win32" ? "" : folder,
    max_connections: "200",
    log_min_messages: "warning",
    ...settings,
  };
  if (options.replicaOf) {
    const { port: primary } = options.replicaOf;
    all["primary_conninfo"] = `host=127.0.0.1 port=${primary} user=postgres password=${password}`;
  }
  if (tls) {
    for (const [name, text] of [
      ["ssl_cert_file", tls.cert],
      ["ssl_key_file", tls.key],
    ] as const) {
      const file = join(folder, `${name}.pem`);
      writeFileSync(file, text, { mode: 0o600 });
      if (user) chownSync(file, user.uid, user.gid);
      all[name] = file;
    }
    all["ssl"] = "on";
  }
  return Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

/** Resolves when the server accepts connections. Rejects with its log when it ends instead. */
async function accepts(url: string, child: ChildProcess, log: string): Promise<void> {
  let failed: unknown;
  child.once("error", (error) => (failed = error));
  const text = (): string => readFileSync(log, "utf8");
  await until(
    async () => {
      if (failed !== undefined || child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`PostgreSQL ended:\n${text()}`, { cause: failed });
      }
      const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
      client.on("error", () => undefined);
      try {
        await client.connect();
        return true;
      } catch (cause) {
        failed = cause instanceof Error && "code" in cause && cause.code === "28P01" ? cause : undefined;
        return false;
      } finally {
        await client.end().catch(() => undefined);
      }
    },
    () => `PostgreSQL does not accept connections:\n${text()}`,
  );
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  // A session that does not end keeps a server from stopping.
  const impatient = setTimeout(() => child.kill("SIGQUIT"), 30_000);
  await ended;
  clearTimeout(impatient);
}
