import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { root } from "../../scripts/ready.mjs";
import { publishedPackages } from "../../scripts/tarballs.mjs";
import { startRegistry } from "./registry.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The registry with the packages, and the environment with which a program uses the registry. */
    readonly registry: { readonly url: string; readonly env: NodeJS.ProcessEnv };
  }
}

/** Publishes all packages to one registry for all test files. All other packages come from this machine's registry. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const registry = await startRegistry();
  const workspaces = publishedPackages().flatMap(({ manifest }) => ["--workspace", manifest.name]);
  // One process for all packages, because npm takes longer to start than to publish.
  const publish = ["publish", "--provenance=false", "--loglevel=error", ...workspaces];
  await promisify(execFile)("npm", publish, { cwd: root, env: { ...process.env, ...registry.env } });
  project.provide("registry", { url: registry.url, env: registry.env });
  return () => registry.close();
}
