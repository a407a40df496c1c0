import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { pack } from "../../scripts/tarballs.mjs";
import { startRegistry } from "./registry.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The registry that has the packages, and what a program needs in its environment to use it. */
    readonly registry: { readonly url: string; readonly env: NodeJS.ProcessEnv };
  }
}

/** Packs all packages and publishes them to one registry for all files. All other packages come from the registry that this machine has. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const registry = await startRegistry();
  const folder = await mkdtemp(join(tmpdir(), "parley-packed-"));
  const env = { ...process.env, ...registry.env };
  const publish = ["publish", "--provenance=false", "--loglevel=error"];
  for (const { file } of await pack(folder)) await promisify(execFile)("npm", [...publish, file], { cwd: folder, env });
  project.provide("registry", { url: registry.url, env: registry.env });
  return async () => {
    await registry.close();
    await rm(folder, { recursive: true });
  };
}
