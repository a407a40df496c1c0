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
import { plainExpect } from "./store/given.ts";
import type { Runner } from "./store-contract.ts";

export type { ExtensionContractBinding, ExtensionContractOptions, ExtensionContractSeen, ExtensionServerOptions };

/**
 * Tests the promises of every extension (A2A 1.0 §4.6): it is off unless requested, active and echoed over each binding
 * and version, distinct from other versions of it, and enforced if required; without it the JSON is unchanged. While
 * active it causes no failures or log entries, and its methods reveal nothing of other callers. Invalid metadata,
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
  const declare = (cases: ExtensionCases, binding: ExtensionContractBinding, version: string): void => {
    for (const [name, body] of Object.entries(cases)) {
      runner.it(name, async () => {
        const suite = new ExtensionSuite(options, binding, version);
        try {
          await body(suite, (actual) => runner.expect?.(actual) ?? plainExpect(actual));
        } finally {
          await suite.close();
        }
      });
    }
  };
  const over = options.over ?? localBindings();
  for (const binding of over) {
    for (const version of binding.versions ?? ["1.0", "0.3"]) {
      runner.describe(`${binding.client.name} ${version}`, () => declare(activationCases(options), binding, version));
    }
  }
  // Independent of the binding, so tested over one.
  const [first] = over;
  if (first === undefined) throw new TypeError("extensionContract() needs a binding in `over`");
  const version = first.versions?.[0] ?? "1.0";
  runner.describe("input of strangers", () => declare(inputCases(options), first, version));
  runner.describe("hooks", () => declare(hookCases(options), first, version));
}
