import { ExtensionReader } from "@parley/a2a/internal/extensions/index";
import type { AnyExtension, Interceptor } from "@parley/a2a/internal/protocol/index";
import { deepFreeze } from "@parley/a2a/internal/base/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import {
  eventsOf,
  type ExtensionCases,
  type ExtensionContractOptions,
  type ExtensionContractSeen,
  methodsOf,
  outcomeOf,
  refusal,
} from "./given.ts";

/** Activation, over each binding and version. */
export function activationCases<X extends AnyExtension>({
  extension,
  check,
}: ExtensionContractOptions<X>): ExtensionCases {
  const { requires = [], kind } = extension;
  return {
    ...off,
    "is active if requested, and echoed with answers, on streams and in later calls": async (suite, expect) => {
      const client = await suite.extended(await suite.serve());
      const answer = await client.sendMessage(suite.message(true));
      const events = await eventsOf(client.sendStreamingMessage(suite.message(true)));
      if (answer.task !== undefined) await client.getTask(answer.task.id);
      expect(suite.calls.map(({ operation, activated }) => [operation, suite.missing(activated)])).toEqual(
        suite.calls.map(({ operation }) => [operation, []]),
      );
      // A failing hook, an event that violates a schema, and a failed task would each leave a log entry.
      expect(suite.lines).toEqual([]);
      await check?.({ expect, client, answer, events } as unknown as ExtensionContractSeen<X>);
    },
    ...(requires.length > 0 && { ...dependencies }),
    ...(kind !== "data" && { ...required }),
    ...methodCases(Object.keys(methodsOf(extension))),
  };
}

const off: ExtensionCases = {
  "is declared in the card as defined": async (suite, expect) => {
    const server = await suite.serve([suite.extension, ...suite.required]);
    const { uri, description, required, params } = suite.extension;
    const declared = server.cards[0]?.capabilities.extensions?.filter((each) => each.uri === uri) ?? [];
    expect(declared).toEqual([
      {
        uri,
        ...(description !== undefined && { description }),
        ...(required !== undefined && { required }),
        ...(params !== undefined && { params }),
      },
    ]);
    expect(URL.canParse(uri)).toEqual(true);
  },
  "is off unless requested": async (suite, expect) => {
    const client = await suite.connect(await suite.serve());
    const answer = await client.sendMessage(suite.message(false));
    const events = await eventsOf(client.sendStreamingMessage(suite.message(false)));
    expect(suite.calls.map(({ activated }) => suite.active(activated))).toEqual([[], []]);
    const { metadata } = new ExtensionReader(suite.extension).fields;
    const keys = [...metadata.values()].flatMap((entries) => entries.flatMap((entry) => entry.keys));
    expect(keys.filter((key) => JSON.stringify([answer, events]).includes(`${JSON.stringify(key)}:`))).toEqual([]);
  },
  "is distinct from its other versions": async (suite, expect) => {
    const { uri } = suite.extension;
    const others = [`${uri}/`, `${uri}/v0`, uri.slice(0, -1), `${uri}0`];
    const asked = others.filter((each) => each !== uri);
    const client = await suite.connect(await suite.serve(), asked);
    await client.sendMessage(suite.message(false));
    expect(suite.calls.map(({ activated }) => [...activated])).toEqual([[]]);
  },
};

const required: ExtensionCases = {
  "rejects calls that do not request it, if required": async (suite, expect) => {
    const server = await suite.serve([suite.optional({ required: true }), ...suite.required]);
    const client = await suite.connect(server);
    for (const refused of [
      client.sendMessage(suite.message(false)),
      eventsOf(client.sendStreamingMessage(suite.message(false))),
    ]) {
      expect((await refusal(refused))?.code).toEqual("ExtensionSupportRequired");
    }
    const asking = await suite.extended(server);
    expect(await refusal(asking.sendMessage(suite.message(true)))).toEqual(undefined);
  },
};

const dependencies: ExtensionCases = {
  "is active with the extensions that it requires, which a client requests automatically": async (suite, expect) => {
    const server = await suite.serve();
    const { uri, requires = [] } = suite.extension;
    const client = await suite.connect<AnyExtension>(server, [suite.extension]);
    await client.sendMessage(suite.message(true));
    const alone = await suite.connect(server, [uri]);
    await alone.sendMessage(suite.message(false));
    const [whole, part] = suite.calls.map(({ activated }) => activated);
    expect([uri, ...requires].filter((each) => whole?.includes(each) !== true)).toEqual([]);
    expect(part?.includes(uri)).toEqual(false);
  },
};

function methodCases(methods: readonly string[]): ExtensionCases {
  return Object.fromEntries(
    methods.map((name) => [
      `answers ${name} only if active`,
      async (suite, expect) => {
        const server = await suite.serve();
        expect(typeof (await suite.method(await suite.extended(server), name))).toEqual("object");
        // The client has the extension, but its calls do not request it.
        const unasking = await suite.connect<AnyExtension>(server, [suite.extension, ...suite.required], {
          interceptors: [asksForNothing],
        });
        expect((await refusal(suite.method(unasking, name))) === undefined).toEqual(false);
      },
    ]),
  );
}

/** Removes all extensions from the client's requests. */
const asksForNothing: Interceptor = (next) => ({
  call: (operation, request, context) => next.call(operation, request, { ...context, extensions: [] }),
  stream: (operation, request, context) => next.stream(operation, request, { ...context, extensions: [] }),
});

const serverHooks = ["onActivate", "onAccept", "onTurnStart", "onAppend", "onDeliver", "onTurnEnd"] as const;
const clientHooks = ["onRequest", "onEvent"] as const;
const hooks = [...serverHooks, ...clientHooks];

/** When hooks run, and the effect of a failing hook. */
export function hookCases<X extends AnyExtension>({ extension }: ExtensionContractOptions<X>): ExtensionCases {
  const own = hooks.filter((hook) => extension[hook] !== undefined);
  return {
    ...(own.length > 0 && {
      "run only in calls that activated the extension": async (suite, expect) => {
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
      own.map((hook) => [`a failing \`${hook}\` has the effect that its kind defines`, failing(extension, hook)]),
    ),
    ...(extension.onDeliver !== undefined && delivering(extension)),
    "serve two callers concurrently": async (suite, expect) => {
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
        throw new Error("The test makes this hook fail");
      },
    };
    const atServer = serverHooks.some((each) => each === hook);
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
    // The server still works.
    const plain = await suite.connect(server);
    expect(typeof (await plain.sendMessage(suite.message(false)))).toEqual("object");
  };
}

function delivering(extension: AnyExtension): ExtensionCases {
  return {
    "`onDeliver` depends only on the event and does not change it": async (suite, expect) => {
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
