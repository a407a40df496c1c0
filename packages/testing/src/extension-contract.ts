import type { SendInput } from "@parley/a2a/internal/client/index";
import type { Agent, AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { ClientBinding } from "@parley/a2a/internal/transport/client/binding";
import type { ContractServer } from "./binding/given.ts";
import { activationCases, hookCases } from "./extension/activation-cases.ts";
import {
  ExtensionSuite,
  type ExtensionCases,
  type ExtensionContractSeen,
  type ExtensionServerOptions,
} from "./extension/given.ts";
import { inputCases } from "./extension/input-cases.ts";
import { localBindings } from "./in-process.ts";
import { plainExpect } from "./store/given.ts";
import type { Runner } from "./store-contract.ts";

export type { ExtensionContractSeen, ExtensionServerOptions };

/** How agents are served over a binding, and called. */
export interface ExtensionContractBinding {
  /** Serves an agent with the server's side of the binding. The options go to `createHandler` or `serve` unchanged. */
  readonly serve: (agent: Agent, options: ExtensionServerOptions) => Promise<ContractServer>;
  /** The client's side. */
  readonly client: ClientBinding;
  /** Versions to speak. Default: `1.0` and `0.3`. */
  readonly versions?: readonly string[];
}

/** Options of `extensionContract()`. */
export interface ExtensionContractOptions<X extends AnyExtension> {
  /** The extension. */
  readonly extension: X;
  /** The extensions that it requires. Default: none. */
  readonly required?: readonly AnyExtension[];
  /**
   * Creates an agent that uses the extension if active, and also answers without it. Default: an agent that echoes the
   * text of the message as an artifact.
   */
  readonly agent?: () => Agent;
  /** A message of a client with (`active`) or without the extension. Default: a text. */
  readonly message?: (active: boolean) => SendInput;
  /**
   * Checks what a client with the extension received for that message, and throws if something is missing. Default: no
   * check.
   */
  readonly check?: (seen: ExtensionContractSeen<X>) => void | Promise<void>;
  /** A valid request for each of its methods. */
  readonly requests?: Readonly<Record<string, unknown>>;
  /** Bindings to test. Default: JSON-RPC and REST, without a network. */
  readonly over?: readonly ExtensionContractBinding[];
}

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
