import type { Agent, AgentMount } from "@parley/a2a";
import { CommandError } from "./errors.ts";
import { loadDefault } from "./load-module.ts";

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
    return value.length === 0 ? "its default export is an empty list" : "its list holds something else";
  return `its default export is of type ${value === null ? "null" : typeof value}`;
}

/** Loads the agents of a module: its default export is one agent, or a list of mounts. */
export async function loadAgents(file: string, cwd: string): Promise<Agent | readonly AgentMount[]> {
  const value = await loadDefault(file, cwd, isAgent);
  if (isAgent(value)) return value;
  if (Array.isArray(value) && value.length > 0 && value.every(isMount)) return value;
  throw new CommandError(
    `${file} has no agent: ${describe(value)}. Write "export default defineAgent({ … })", ` +
      `or export a list of mounts: [{ agent, path: "/weather" }]`,
  );
}
