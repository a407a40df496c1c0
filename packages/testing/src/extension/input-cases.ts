import { ExtensionReader, misfits } from "@parley/a2a/internal/extensions/index";
import type { JsonObject, JsonValue, SendMessageRequest } from "@parley/a2a/internal/model/index";
import { type AnyExtension, type Interceptor, mapItems } from "@parley/a2a/internal/protocol/index";
import { byName } from "../binding/host-cases.ts";
import {
  eventsOf,
  methodsOf,
  outcomeOf,
  plainJson,
  refusal,
  type ExtensionCases,
  type ExtensionContractOptions,
} from "./given.ts";

/** Untrusted input, from agents to clients and from clients to agents. */
export function inputCases<X extends AnyExtension>({ extension }: ExtensionContractOptions<X>): ExtensionCases {
  const reader = new ExtensionReader(extension);
  const methods = Object.keys(methodsOf(extension));
  const places = ["request", "message", "part"] as const;
  const sends = reader.fields.data.length > 0 || places.some((place) => reader.fields.metadata.has(place));
  return {
    ...always,
    ...Object.fromEntries(methods.map((name) => [`${name} reveals nothing of other callers`, apart(name)])),
    ...(sends && {
      "checks input to an agent: kind data omits invalid values, other kinds fail with InvalidParams": async (
        suite,
        expect,
      ) => {
        const client = await suite.connect(await suite.serve(), suite.uris);
        const usual = await outcomeOf(client.sendMessage(suite.message(true)));
        for (const { field, change } of wrongRequests(reader)) {
          const outcome = await outcomeOf(client.sendMessage(change(suite.request(true))));
          expect([field, outcome]).toEqual([field, extension.kind === "data" ? usual : "InvalidParams"]);
        }
      },
      "if inactive, accepts input that it would otherwise reject": async (suite, expect) => {
        const client = await suite.connect(await suite.serve());
        const usual = await outcomeOf(client.sendMessage(suite.message(false)));
        for (const { field, change } of wrongRequests(reader)) {
          const outcome = await outcomeOf(client.sendMessage(change(suite.request(false))));
          expect([field, outcome]).toEqual([field, usual]);
        }
      },
    }),
    "tolerates anything that an agent may send to a client": async (suite, expect) => {
      const server = await suite.serve();
      for (const odd of oddValues) {
        const client = await suite.connect<AnyExtension>(server, [extension, ...suite.required], {
          interceptors: [saying(reader, odd)],
        });
        const read = async (): Promise<void> => {
          for (const event of await eventsOf(client.sendStreamingMessage(suite.message(true)))) {
            looked(event.ext(extension));
          }
        };
        const error = await refusal(read());
        // An extension may reject an event with a protocol error. Any other error of its hook is a bug.
        expect([odd, error?.code === "InternalError" && error.message]).toEqual([odd, false]);
      }
      expect(suite.lines.filter(({ message }) => message.includes("hook"))).toEqual([]);
    },
  };
}

/** Tasks and contexts belong to their owner (A2A 1.0 §13.1). */
function apart(name: string): ExtensionCases[string] {
  return async (suite, expect) => {
    const server = await suite.serve(undefined, { authenticator: byName });
    const as = (caller: string) => suite.extended(server, { headers: { "x-name": caller } });
    const { task, message } = await (await as("ada")).sendMessage(suite.message(true));
    const own = [task?.id, task?.contextId ?? message?.contextId].filter((id) => id !== undefined);
    let answer: unknown;
    await refusal(suite.method(await as("bob"), name).then((given) => void (answer = given)));
    const told = JSON.stringify(answer) ?? "";
    expect(own.filter((id) => told.includes(id))).toEqual([]);
  };
}

const always: ExtensionCases = {
  "changes no JSON if inactive": async (suite, expect) => {
    const seen: unknown[] = [];
    for (const server of [await suite.serve(), await suite.serve([])]) {
      const client = await suite.connect(server);
      const answer = await client.sendMessage(suite.message(false));
      const events = await eventsOf(client.sendStreamingMessage(suite.message(false)));
      seen.push([plainJson([answer]), plainJson(events)]);
    }
    expect(seen[0]).toEqual(seen[1]);
  },
  "adds nothing to the JSON that a client receives": async (suite, expect) => {
    const server = await suite.serve();
    const client = await suite.extended(server);
    const events = await eventsOf(client.sendStreamingMessage(suite.message(true)));
    expect(events.map((event) => JSON.stringify(event))).toEqual(suite.came);
  },
  "tolerates unexpected params on a card": async (suite, expect) => {
    const server = await suite.serve();
    const [card] = server.cards;
    for (const params of [
      undefined,
      {},
      { "": null },
      { version: [], versions: 5, roles: "x", keys: { a: {} } },
    ] as const) {
      const extensions = card?.capabilities.extensions?.map(({ params: _, ...each }) =>
        each.uri === suite.extension.uri && params !== undefined ? { ...each, params } : each,
      );
      const odd = card && { ...card, capabilities: { ...card.capabilities, ...(extensions && { extensions }) } };
      const client = await suite.connect<AnyExtension>(server, [suite.extension, ...suite.required], { card: odd });
      const error = await refusal(client.sendMessage(suite.message(true)));
      expect([params, error?.code === "InternalError" && error.message]).toEqual([params, false]);
    }
    expect(suite.lines.filter(({ message }) => message.includes("hook"))).toEqual([]);
  },
};

/** Values of every type. Almost no schema accepts them all. */
const oddValues: readonly JsonValue[] = [
  5,
  "text",
  true,
  null,
  [],
  {},
  [null],
  { "": 1 },
  "x".repeat(100_000),
  JSON.parse('{"__proto__":{"a":1},"constructor":null}'),
  Array.from({ length: 500 }).reduce<JsonValue>((inner) => [inner], 1),
];

/** A field, and a request with an invalid value for it. */
interface WrongRequest {
  readonly field: string;
  readonly change: (request: SendMessageRequest) => SendMessageRequest;
}

function wrongRequests({ fields }: ExtensionReader): readonly WrongRequest[] {
  const wrong: WrongRequest[] = [];
  const places = {
    request: (request: SendMessageRequest, more: JsonObject) => ({
      ...request,
      metadata: { ...request.metadata, ...more },
    }),
    message: (request: SendMessageRequest, more: JsonObject) => {
      const { message } = request;
      return { ...request, message: { ...message, metadata: { ...message.metadata, ...more } } };
    },
    part: ({ message, ...request }: SendMessageRequest, more: JsonObject) => {
      const parts = message.parts.map((part) => ({ ...part, metadata: { ...part.metadata, ...more } }));
      return { ...request, message: { ...message, parts } };
    },
  };
  for (const place of ["request", "message", "part"] as const) {
    const put = places[place];
    for (const { name, keys, schema } of fields.metadata.get(place) ?? []) {
      const value = oddValues.find((odd) => misfits(schema, name, odd).length > 0);
      if (value === undefined) continue;
      wrong.push({ field: `${place}.${name}`, change: (request) => put(request, { [keys[0]]: value }) });
    }
  }
  for (const { name, mediaType, schema, matches } of fields.data) {
    const parts = oddValues.map((data) => ({ data, ...(mediaType !== undefined && { mediaType }) }));
    const part = parts.find((each) => matches(each) && misfits(schema, name, each.data).length > 0);
    if (part === undefined) continue;
    const change = ({ message, ...request }: SendMessageRequest): SendMessageRequest => {
      return { ...request, message: { ...message, parts: [...message.parts, part] } };
    };
    wrong.push({ field: `data.${name}`, change });
  }
  return wrong;
}

/** Sets every metadata key of the extension to a value, and adds it as a data part of each of its media types. */
function saying({ fields }: ExtensionReader, odd: JsonValue): Interceptor {
  const keys = [...fields.metadata.values()].flat().flatMap((entry) => entry.keys);
  const metadata = Object.fromEntries(keys.map((key) => [key, odd]));
  const parts = fields.data.map(({ mediaType }) => ({ data: odd, ...(mediaType !== undefined && { mediaType }) }));
  /** Changes every object that has metadata or parts. */
  const spoiled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(spoiled);
    if (typeof value !== "object" || value === null) return value;
    const own = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, spoiled(each)]));
    if ("data" in value) return value;
    return { ...own, ...(Array.isArray(own["parts"]) && { parts: own["parts"].concat(parts) }), metadata };
  };
  return (next) => ({
    call: (operation, request, context) => next.call(operation, request, context),
    async stream(operation, request, context) {
      const reply = await next.stream(operation, request, context);
      const batches = mapItems(reply.batches, (item) => ({
        ...item,
        payload: item.payload.map((event) => spoiledEvent(event, spoiled)),
      }));
      return { ...reply, batches };
    },
  });
}

/** Changes the content of an event. The event itself has no metadata. */
function spoiledEvent<T extends object>(event: T, spoiled: (value: unknown) => unknown): T {
  return Object.fromEntries(Object.entries(event).map(([name, each]) => [name, spoiled(each)])) as T;
}

/** Reads every member of an extension's result, some levels deep. */
function looked(value: unknown, depth = 3): void {
  if (depth === 0 || typeof value !== "object" || value === null || value instanceof Promise) return;
  for (
    let at: object | null = value;
    at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (property.get !== undefined || property.value !== undefined) looked(Reflect.get(value, name), depth - 1);
    }
  }
}
