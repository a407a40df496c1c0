import type { TestProject } from "vitest/node";
import { startPostgres } from "./server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of a database on the server of this run, whose user may create databases. */
    readonly postgres: string;
  }
}

/**
 * The server of a run: the one that `DATABASE_URL` names, else one of its own. Where neither can be had, the run fails: its tests
 * are never skipped.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env["DATABASE_URL"];
  if (given !== undefined && given !== "") {
    project.provide("postgres", given);
    return undefined;
  }
  const server = await startPostgres();
  process.stdout.write(`postgres: a server of ${server.source}, process ${server.pid}\n`);
  project.provide("postgres", server.url);
  return () => server.remove();
}
