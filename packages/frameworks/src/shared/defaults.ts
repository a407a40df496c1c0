import type { AgentDefinition } from "@parley/server";

/** Defaults of every adapter: turns are resumed after a crash, and answers to questions may come as data. */
export const adapterDefaults: Pick<AgentDefinition, "resumable" | "defaultInputModes"> = {
  resumable: true,
  defaultInputModes: ["text/plain", "application/json"],
};
