import type { AgentDefinition } from "@parley/server";

/** Defaults of every adapter: turns resume after a crash, and answers to questions may be data parts. */
export const adapterDefaults: Pick<AgentDefinition, "resumable" | "defaultInputModes"> = {
  resumable: true,
  defaultInputModes: ["text/plain", "application/json"],
};
