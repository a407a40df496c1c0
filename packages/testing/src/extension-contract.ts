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
  /** Serves an agent with the server's side of the binding. The options go to `createHandler` or `serve` as they are. */
  readonly serve: (agent: Agent, options: ExtensionServerOptions) => Promise<ContractServer>;
  /** The client's side. */
  readonly client: ClientBinding;
  /** Versions to speak. Default: `1.0` and `0.3`. */
  readonly versions?: readonly string[];
}

/** What `extensionContract()` tests, and how. */
export interface ExtensionContractOptions<X extends AnyExtension> {
  /** The extension. */
  readonly extension: X;
  /** The extensions that it requires. Default: none. */
  readonly required?: readonly AnyExtension[];
  /**
   * Makes an agent that uses the extension where it is active, and answers without it too. Default: one that says that it works, and gives
   * the text of the message as an artifact.
   */
  readonly agent?: () => Agent;
  /**
   * A message as a client with the extension sends it, with an id of its own or none. Where a message without the extension has to be
   * another one, `active` says which is wanted. Default: a text.
   */
  readonly message?: (active: boolean) => SendInput;
  /** Checks what a client with the extension has got for that message. Throws where something is missing. Default: nothing is checked. */
  readonly check?: (seen: ExtensionContractSeen<X>) => void | Promise<void>;
  /** Requests that its methods answer, by method. Each method needs one. */
  readonly requests?: Readonly<Record<string, unknown>>;
  /** Bindings to test. Default: JSON-RPC and REST, without a network. */
  readonly over?: readonly ExtensionContractBinding[];
}

/**
 * What every extension has to promise, as tests (A2A 1.0 §4.6): it is off unless it is asked for, it is active and echoed over each
 * binding and version, another version of it is another extension, a required one is enforced, and without it the JSON is what it was.
 * Where it is active, nothing fails, and no line of a log says so. Its methods tell a caller nothing of another one.
 * Bad metadata, params and data parts, on either side, and hooks that fail do what its kind says. An extension package runs it on itself.
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
  // What does not depend on the binding is tested over one.
  const [first] = over;
  if (first === undefined) throw new TypeError("extensionContract() needs a binding in `over`");
  const version = first.versions?.[0] ?? "1.0";
  runner.describe("input of strangers", () => declare(inputCases(options), first, version));
  runner.describe("hooks", () => declare(hookCases(options), first, version));
}
