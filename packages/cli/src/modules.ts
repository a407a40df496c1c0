import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import type { AgentMount } from "@parley/server/internal/handler";
import { register as registerCommonJs } from "tsx/cjs/api";
import { register as registerModules } from "tsx/esm/api";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";

const extensions = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs"];

/**
 * Returns the default export of a JavaScript or TypeScript module. The TypeScript loader is registered globally, so that the module and
 * this process share one copy of every package.
 *
 * @param isWanted - Recognizes the export. A CommonJS module that was compiled from an ES module has it one level deeper.
 */
export async function loadDefault(file: string, cwd: string, isWanted: (value: unknown) => boolean): Promise<unknown> {
  const path = resolve(cwd, file);
  if (!extensions.includes(extname(path))) {
    throw new UsageError(`${file} is not a module: its extension must be one of ${extensions.join(", ")}`);
  }
  try {
    await readFile(path);
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${fileReason(error)}`, { cause: error });
  }
  registerModules();
  registerCommonJs();
  let module: object;
  try {
    module = (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    throw new CommandError(`cannot load ${file}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const value: unknown = "default" in module ? module.default : undefined;
  return typeof value === "object" && value !== null && !isWanted(value) && "default" in value ? value.default : value;
}

function isAgent(value: unknown): value is Agent {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "execute" in value &&
    typeof value.execute === "function"
  );
}

function isMount(value: unknown): value is AgentMount {
  return typeof value === "object" && value !== null && "agent" in value && isAgent(value.agent);
}

function describe(value: unknown): string {
  if (value === undefined) return "it has no default export";
  if (Array.isArray(value))
    return value.length === 0 ? "its default export is an empty list" : "its list must contain only mounts";
  return `its default export is of type ${value === null ? "null" : typeof value}`;
}

/** Loads the default export of a module: an agent, or a list of mounts. */
export async function loadAgents(file: string, cwd: string): Promise<Agent | readonly AgentMount[]> {
  const value = await loadDefault(file, cwd, isAgent);
  if (isAgent(value)) return value;
  if (Array.isArray(value) && value.length > 0 && value.every(isMount)) return value;
  throw new CommandError(
    `${file} exports no agent: ${describe(value)}. Write "export default defineAgent({ … })", ` +
      `or export a list of mounts: [{ agent, path: "/weather" }]`,
  );
}
