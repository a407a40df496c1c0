import type { AnyExtension } from "@parley/a2a/internal/protocol/index";
import { activationCases, hookCases } from "./extension/activation-cases.ts";
import {
  ExtensionSuite,
  type ExtensionCases,
  type ExtensionContractBinding,
  type ExtensionContractOptions,
  type ExtensionContractSeen,
  type ExtensionServerOptions,
} from "./extension/given.ts";
import { inputCases } from "./extension/input-cases.ts";
import { localBindings } from "./in-process.ts";
import { declareCases, type Runner } from "./runner.ts";

export type { ExtensionContractBinding, ExtensionContractOptions, ExtensionContractSeen, ExtensionServerOptions };

/**
 * Tests the promises of every extension (A2A 1.0 §4.6): it is off unless requested, active and echoed over each binding
 * and version, distinct from its other versions, and enforced if required. If it is off, the JSON is unchanged. While
 * active, it causes no failures or log entries, and its methods reveal nothing of other callers. Invalid metadata,
 * params and data parts on either side, and failing hooks, have the effect that its kind defines. Extension packages
 * run it on themselves.
 *
 * @example
 * ```ts
 * import { describe, it } from "node:test";
 *
 * const drafts = defineExtension({ uri: "https://example.com/extensions/drafts/v1", kind: "data" });
 * extensionContract({ describe, it }, { extension: drafts });
 * ```
 */
export function extensionContract<X extends AnyExtension>(runner: Runner, options: ExtensionContractOptions<X>): void {
  const declare = (chapter: string, cases: ExtensionCases, binding: ExtensionContractBinding, version: string): void =>
    declareCases(runner, chapter, cases, () => {
      const given = new ExtensionSuite(options, binding, version);
      return { given, close: () => given.close() };
    });
  const over = options.over ?? localBindings();
  for (const binding of over) {
    for (const version of binding.versions ?? ["1.0", "0.3"]) {
      declare(`${binding.client.name} ${version}`, activationCases(options), binding, version);
    }
  }
  // These cases do not depend on the binding, so one is enough.
  const [first] = over;
  if (first === undefined) throw new TypeError("extensionContract() needs a binding in `over`");
  const version = first.versions?.[0] ?? "1.0";
  declare("untrusted input", inputCases(options), first, version);
  declare("hooks", hookCases(options), first, version);
}
