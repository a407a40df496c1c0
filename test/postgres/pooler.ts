import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { reservePort } from "../ports.ts";
import { sharedFolder } from "../temporary.ts";
import { unprivileged } from "./server.ts";
import { tie, until } from "./tie.ts";

/** PgBouncer before a database. */
export interface Pooler {
  /** The URL of the database through it. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts PgBouncer (`PGBOUNCER`, else `pgbouncer` of `PATH`) before the database of a URL. If there is none, it rejects. */
export async function startPooler(database: string, mode: "transaction" | "session"): Promise<Pooler> {
  const port = await reservePort();
  const target = new URL(database);
  const folder = mkdtempSync(join(sharedFolder(), "parley-pooler-"));
  chmodSync(folder, 0o755);
  const name = target.pathname.slice(1);
  const [user, password] = [decodeURIComponent(target.username), decodeURIComponent(target.password)];
  writeFileSync(join(folder, "users"), `"${user}" "${password}"\n`);
  const settings = [
    "[databases]",
    `${name} = host=${target.hostname} port=${target.port || "5432"} dbname=${name} user=${user} password=${password}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = plain",
    `auth_file = ${join(folder, "users")}`,
    `pool_mode = ${mode}`,
    "default_pool_size = 5",
    // After a server was not there, it is asked for again so many seconds later. The default is 15.
    "server_login_retry = 1",
  ];
  writeFileSync(join(folder, "settings.ini"), `${settings.join("\n")}\n`);
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin` };
  const child = spawn(process.env["PGBOUNCER"] ?? "pgbouncer", [join(folder, "settings.ini")], {
    ...unprivileged(),
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  let failed: unknown;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.once("error", (error) => (failed = error));
  const letGo = tie(child.pid, "KILL", folder);
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const close = async (): Promise<void> => {
    process.off("exit", kill);
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      kill();
      await ended;
    }
    letGo();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(
      async () => {
        if (failed !== undefined || child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`There is no PgBouncer. Debian has it in its package pgbouncer\n${said}`, { cause: failed });
        }
        return said.includes("process up");
      },
      () => `PgBouncer does not start:\n${said}`,
    );
  } catch (thrown) {
    await close();
    throw thrown;
  }
  const url = new URL(database);
  url.port = String(port);
  url.hostname = "127.0.0.1";
  return { url: url.href, close };
}
