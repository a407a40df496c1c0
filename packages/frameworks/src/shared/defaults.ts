import { checkOptions, type OptionNames } from "@parley/a2a/internal/model/index";
import { meantBy } from "@parley/a2a/internal/model/options";
import type { AgentDefinition } from "@parley/server";
import { agentOptions } from "@parley/server/internal/agent/index";

/** Defaults of every adapter: turns resume after a crash, and answers to questions may be data parts. */
export const adapterDefaults: Pick<AgentDefinition, "resumable" | "defaultInputModes"> = {
  resumable: true,
  defaultInputModes: ["text/plain", "application/json"],
};

/**
 * Rejects unknown options of an adapter, and options that the adapter sets itself.
 *
 * @param of - The adapter: `fromAISDK()`.
 * @param own - The adapter's options in addition to the options of `defineAgent()`.
 */
export function checkDefinition<Definition extends object>(
  of: string,
  definition: Definition,
  own: OptionNames<Omit<Definition, keyof AgentDefinition>>,
): void {
  const { onMessage: _, extensions: __, security: ___, ...others } = agentOptions;
  checkOptions(of, definition, { ...own, ...others }, meantBy);
}
