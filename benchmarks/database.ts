import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { firstLine } from "./lines.ts";

/** A PostgreSQL database with `fsync`. */
export interface Database {
  readonly url: string;
  /** The version of the server. */
  readonly version: string;
  stop(): Promise<void>;
}

/** Creates a database on the server of `DATABASE_URL`, or on a separate server with files on disk. */
export async function startDatabase(): Promise<Database> {
  // The server of the tests.
  const program = fileURLToPath(new URL("../../test/postgres/main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { said, stop } = await firstLine<Pick<Database, "url" | "version">>(child, "PostgreSQL");
  return { ...said, stop };
}
