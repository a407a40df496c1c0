import { invalidParams, type Message } from "@parley/a2a/internal/model/index";
import type {
  AcceptedCall,
  AcceptedInput,
  DataPartField,
  EventReads,
  ExtensionMethod,
  ExtensionTurn,
  ExtensionTypes,
  MetadataField,
  Principal,
} from "@parley/a2a/internal/protocol/index";
import { defineExtension, extensionMethod, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import { fitting } from "../shared/values.ts";
import {
  agpSchemas,
  delegationSchema,
  intentSchema,
  type AgpTable,
  agpUri,
  type AnnounceRequest,
  type AnnounceResponse,
  type DelegationIntent,
  delegationMediaType,
  intentMediaType,
  type IntentPayload,
  isDelegationPart,
  isIntentPart,
  methodSchemas,
  namesSchema,
  pathListsSchema,
  type RouteEntry,
  type RoutesRequest,
  type WithdrawRequest,
  type WithdrawResponse,
} from "./shapes.ts";
import type { AgentGateway } from "./port.ts";

/** Result of `turn.ext()` at a gateway. */
export interface AgpTurn {
  /** The intent, if the message has one. */
  readonly intent?: IntentPayload;
  /** The delegation, if the message has one. */
  readonly delegation?: DelegationIntent;
  /** The chosen path of the intent, or of each part of the delegation. Empty: no path. */
  readonly paths: readonly string[];
  /**
   * Up to 3 more paths for each of `paths`, cheapest first, in case an agent is unreachable or rejects the intent
   * before it begins. Chosen when the message arrived.
   */
  readonly alternatives: readonly (readonly string[])[];
  /** Names of the gateways that the message passed. */
  readonly via: readonly string[];
}

/** The types of AGP. */
export interface AgpTypes extends ExtensionTypes {
  readonly metadata: {
    readonly message: Readonly<Record<"via" | "paths", MetadataField<readonly string[]>>> & {
      readonly alternatives: MetadataField<readonly (readonly string[])[]>;
    };
  };
  readonly data: {
    readonly intent: DataPartField<IntentPayload>;
    readonly delegation: DataPartField<DelegationIntent>;
  };
  readonly subStates: never;
  readonly methods: {
    readonly "agp/announce": ExtensionMethod<AnnounceRequest, AnnounceResponse>;
    readonly "agp/withdraw": ExtensionMethod<WithdrawRequest, WithdrawResponse>;
    readonly "agp/routes": ExtensionMethod<RoutesRequest, AgpTable>;
  };
  readonly turn: AgpTurn;
  readonly event: EventReads<AgpTypes>;
}

/** AGP. `turn.ext()` gives an `AgpTurn`. */
export type AgpExtension = DefinedExtension<typeof agpUri, AgpTypes>;

/** Keys of metadata: the gateways that a message passed, and the paths that this gateway chose. */
export const viaKey: string = `${agpUri}/via`;
const pathsKey = `${agpUri}/paths`;
const alternativesKey = `${agpUri}/alternatives`;

/** Maximum number of alternative routes per intent and per message. Limited, because a task has a limited number of delegations. */
const maxAlternatives = 3;
const maxAlternativesInAll = 32;
/** Maximum total length of the alternatives, in characters. Limited, because they are stored with the message. */
const longestAlternatives = 16 << 10;

/**
 * The Agent Gateway Protocol. `agp({ gateway })` is for the server of a gateway: it routes intents, and has methods to
 * announce and withdraw routes. `agp()` is for clients.
 *
 * @example
 * ```ts
 * const client = await connect("https://corporate.example.com", { extensions: [agp()] });
 * ```
 */
export function agp({ gateway }: { readonly gateway?: AgentGateway } = {}): AgpExtension {
  const names = (key: string) => ({ key, schema: namesSchema });
  return defineExtension({
    uri: agpUri,
    description: "Routes intents to agents by capability, cost and policy",
    params: { agent_role: "gateway", supported_agp_versions: ["1.0"] },
    paramsSchema: agpSchemas.params,
    // The route is not content: a retry over another route is the same message.
    metadata: {
      message: {
        via: { ...names(viaKey), volatile: true },
        paths: { ...names(pathsKey), volatile: true },
        alternatives: { key: alternativesKey, schema: pathListsSchema, volatile: true },
      },
    },
    data: {
      intent: { matches: isIntentPart, mediaType: intentMediaType, schema: agpSchemas.intent },
      delegation: { matches: isDelegationPart, mediaType: delegationMediaType, schema: agpSchemas.delegation },
    },
    methods: methodsOf(gateway),
    ...(gateway && { onAccept: (input: AcceptedInput, call: AcceptedCall) => routed(gateway, input, call) }),
    onTurnStart: ({ message }: ExtensionTurn): AgpTurn => readTurn(message),
  });
}

function methodsOf(gateway: AgentGateway | undefined): AgpTypes["methods"] {
  const method = <Request, Response>(
    name: string,
    rest: ExtensionMethod<Request, Response>["rest"],
    schemas: Pick<ExtensionMethod<Request, Response>, "request" | "response">,
    answer: (to: AgentGateway, request: Request, by: Principal) => Promise<Response>,
  ) =>
    extensionMethod<Request, Response>({
      ...schemas,
      idempotent: true,
      rest,
      grpc: `/agp.v1.AgentGateway/${name}`,
      ...(gateway && { onCall: (request, { principal }) => answer(gateway, request, principal) }),
    });
  const { announce, withdraw, routes } = methodSchemas;
  return {
    "agp/announce": method("Announce", { method: "POST", path: "/agp:announce" }, announce, (to, request, by) =>
      to.announce(request, by),
    ),
    "agp/withdraw": method(
      "Withdraw",
      { method: "POST", path: "/agp:withdraw" },
      withdraw,
      async (to, request, by) => ({ withdrawn: await to.withdraw(request, by) }),
    ),
    "agp/routes": method("Routes", { method: "GET", path: "/agp/routes" }, routes, (to, { capability }, by) =>
      to.routes(capability, by),
    ),
  };
}

/**
 * Chooses routes before the message is stored, so that a caller without a route gets an AGP error (§5), and a repeated
 * turn uses the same routes.
 */
async function routed(gateway: AgentGateway, input: AcceptedInput, { logger }: AcceptedCall): Promise<AcceptedInput> {
  const { [pathsKey]: _, [alternativesKey]: __, ...metadata } = input.message.metadata ?? {};
  const message: Message = { ...input.message, metadata };
  const { intent, delegation, via } = readTurn(message);
  const checked = { ...input, message: withPaths(message, []) };
  if (intent === undefined && delegation === undefined) return checked;
  const count = message.parts.filter((part) => isIntentPart(part) || isDelegationPart(part)).length;
  if (count > 1) throw invalidParams([{ field: "message.parts", description: "must not hold more than one intent" }]);
  if (intent !== undefined) {
    return { ...input, message: withPaths(message, [pathsOf(await gateway.routesFor(intent, via))]) };
  }
  const ways: (readonly string[])[] = [];
  for (const part of delegation?.sub_intents ?? []) {
    const paths = await gateway.routesFor(part, via).then(pathsOf, (cause: unknown) => {
      logger.info("No route for a part of a delegation", { capability: part.target_capability, cause });
      return [""];
    });
    ways.push(paths);
  }
  return { ...input, message: withPaths(message, ways) };
}

/** The cheapest path and its alternatives. Two announcers may use the same path. */
function pathsOf(routes: readonly RouteEntry[]): readonly string[] {
  return [...new Set(routes.map(({ path }) => path))].slice(0, 1 + maxAlternatives);
}

/** Stores the chosen path of each intent, and alternatives as far as they fit. */
function withPaths(message: Message, ways: readonly (readonly string[])[]): Message {
  let room = longestAlternatives;
  let count = maxAlternativesInAll;
  const hasRoom = ({ length }: string): boolean => (room -= length) >= 0 && (count -= 1) >= 0;
  const alternatives = ways.map(([, ...others]) => others.filter(hasRoom));
  const metadata = {
    ...message.metadata,
    ...(ways.length > 0 && { [pathsKey]: ways.map(([path = ""]) => path) }),
    ...(alternatives.some(({ length }) => length > 0) && { [alternativesKey]: alternatives }),
  };
  if (Object.keys(metadata).length > 0) return { ...message, metadata };
  const { metadata: _, ...bare } = message;
  return bare;
}

/** The AGP content of a message. Invalid values are absent. */
function readTurn({ parts, metadata }: Message): AgpTurn {
  const intent = fitting(intentSchema, parts.find(isIntentPart)?.data);
  const delegation = fitting(delegationSchema, parts.find(isDelegationPart)?.data);
  return {
    ...(intent !== undefined && { intent }),
    ...(delegation !== undefined && { delegation }),
    paths: textsOf(metadata?.[pathsKey]),
    alternatives: listOf(metadata?.[alternativesKey]).map(textsOf),
    via: textsOf(metadata?.[viaKey]),
  };
}

function listOf(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : [];
}

function textsOf(given: unknown): readonly string[] {
  return listOf(given).filter((each) => typeof each === "string");
}
