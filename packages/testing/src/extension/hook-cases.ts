import { deepFreeze } from "@parley/a2a/internal/base/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import type { AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { ExtensionContractOptions } from "../extension-contract.ts";
import { eventsOf, outcomeOf, type ExtensionCases } from "./given.ts";

const serverHooks = ["onActivate", "onAccept", "onTurnStart", "onAppend", "onDeliver", "onTurnEnd"] as const;
const clientHooks = ["onRequest", "onEvent"] as const;
const hooks = [...serverHooks, ...clientHooks];

/** What its hooks may do, and what becomes of a call where they fail. */
export function hookCases<X extends AnyExtension>({ extension }: ExtensionContractOptions<X>): ExtensionCases {
  const own = hooks.filter((hook) => extension[hook] !== undefined);
  return {
    ...(own.length > 0 && {
      "run in calls that have activated it alone": async (suite, expect) => {
        const ran: string[] = [];
        const counting = Object.fromEntries(own.map((hook) => [hook, () => void ran.push(hook)]));
        const server = await suite.serve([suite.optional(counting), ...suite.required]);
        const client = await suite.connect<AnyExtension>(server, []);
        await client.sendMessage(suite.message(false));
        await eventsOf(client.sendStreamingMessage(suite.message(false)));
        expect(ran).toEqual([]);
      },
    }),
    ...Object.fromEntries(
      own.map((hook) => [`\`${hook}\` that throws does what its kind says`, failing(extension, hook)]),
    ),
    ...(extension.onDeliver !== undefined && delivering(extension)),
    "serve two callers at a time": async (suite, expect) => {
      const server = await suite.serve();
      const clients = await Promise.all([suite.extended(server), suite.extended(server), suite.extended(server)]);
      const alone = await outcomeOf(clients[0].sendMessage(suite.message(true)));
      const outcomes = await Promise.all(clients.map((client) => outcomeOf(client.sendMessage(suite.message(true)))));
      expect(outcomes).toEqual([alone, alone, alone]);
    },
  };
}

function failing(extension: AnyExtension, hook: (typeof hooks)[number]): ExtensionCases[string] {
  return async (suite, expect) => {
    const ran: string[] = [];
    const thrower = {
      [hook]: () => {
        ran.push(hook);
        throw new Error("The hook was made to fail");
      },
    };
    const atServer = (serverHooks as readonly string[]).includes(hook);
    const server = await suite.serve([suite.optional(atServer ? thrower : {}), ...suite.required]);
    const client = await suite.connect<AnyExtension>(server, [
      atServer ? extension : { ...extension, ...thrower },
      ...suite.required,
    ]);
    const outcome = await outcomeOf(client.sendMessage(suite.message(true)));
    const harmless = extension.kind === "data" || hook === "onTurnEnd" || ran.length === 0;
    const failed =
      outcome === "InternalError" || outcome === "TASK_STATE_FAILED" || outcome === "ExtensionSupportRequired";
    expect([ran.length > 0, failed]).toEqual([ran.length > 0, !harmless]);
    // The server goes on.
    const plain = await suite.connect(server);
    expect(typeof (await plain.sendMessage(suite.message(false)))).toEqual("object");
  };
}

function delivering(extension: AnyExtension): ExtensionCases {
  return {
    "`onDeliver` depends on the event alone, and leaves it as it is": async (suite, expect) => {
      const pairs: (readonly [StreamResponse, StreamResponse])[] = [];
      const { onDeliver } = extension;
      const twice = {
        onDeliver(event: StreamResponse): StreamResponse {
          const frozen = deepFreeze(structuredClone(event));
          const [first, second] = [onDeliver?.(frozen) ?? frozen, onDeliver?.(structuredClone(event)) ?? event];
          pairs.push([first, second]);
          return first;
        },
      };
      const server = await suite.serve([suite.optional(twice), ...suite.required]);
      const client = await suite.extended(server);
      await eventsOf(client.sendStreamingMessage(suite.message(true)));
      expect(pairs.map(([first]) => first)).toEqual(pairs.map(([, second]) => second));
    },
  };
}
