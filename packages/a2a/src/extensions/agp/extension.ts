import { invalidParams, type JsonObject, type Message, type StandardSchema } from "../../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  DataPartField,
  EventReads,
  ExtensionCall,
  ExtensionMethod,
  ExtensionTurn,
  ExtensionTypes,
  MetadataField,
} from "../../protocol/index.ts";
import { defineExtension, extensionMethod, type DefinedExtension } from "../index.ts";
import { delegationMediaType, intentMediaType, isDelegationPart, isIntentPart } from "./parts.ts";
import type { AgentGateway } from "./port.ts";
import {
  agpSchemas,
  agpUri,
  methodSchemas,
  namesSchema,
  type AgpTable,
  type AnnounceRequest,
  type AnnounceResponse,
  type DelegationIntent,
  type IntentPayload,
  type RoutesRequest,
  type WithdrawRequest,
  type WithdrawResponse,
} from "./shapes.ts";

/** What a gateway's agent reads of a message. */
export interface AgpTurn {
  /** The intent. Absent where the message has none, or a delegation. */
  readonly intent?: IntentPayload;
  /** The delegation. Absent where the message has none. */
  readonly delegation?: DelegationIntent;
  /** The path that was chosen for the intent, or for each part of the delegation: empty where there is none. */
  readonly paths: readonly string[];
  /** Names of the gateways that the message came through. */
  readonly via: readonly string[];
}

/** The types of AGP. */
export interface AgpTypes extends ExtensionTypes {
  readonly metadata: { readonly message: Readonly<Record<"via" | "paths", MetadataField<readonly string[]>>> };
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

/** Where the gateways are listed that a message came through, and the paths that this gateway has chosen. */
export const viaKey: string = `${agpUri}/via`;
const pathsKey = `${agpUri}/paths`;

/**
 * The Agent Gateway Protocol, for servers and clients. `agp({ gateway })` is for the server of a gateway: it routes intents, and its methods
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
    // The gateways on its way are no content: a message that is sent again by another way is the same.
    metadata: { message: { via: { ...names(viaKey), volatile: true }, paths: { ...names(pathsKey), volatile: true } } },
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
  return {
    "agp/announce": extensionMethod({
      ...methodSchemas.announce,
      idempotent: true,
      rest: { method: "POST", path: "/agp:announce" },
      grpc: "/agp.v1.AgentGateway/Announce",
      ...(gateway && {
        onCall: (request: AnnounceRequest, { principal }: ExtensionCall) => gateway.announce(request, principal),
      }),
    }),
    "agp/withdraw": extensionMethod({
      ...methodSchemas.withdraw,
      idempotent: true,
      rest: { method: "POST", path: "/agp:withdraw" },
      grpc: "/agp.v1.AgentGateway/Withdraw",
      ...(gateway && {
        onCall: async (request: WithdrawRequest, { principal }: ExtensionCall) => ({
          withdrawn: await gateway.withdraw(request, principal),
        }),
      }),
    }),
    "agp/routes": extensionMethod({
      ...methodSchemas.routes,
      idempotent: true,
      rest: { method: "GET", path: "/agp/routes" },
      grpc: "/agp.v1.AgentGateway/Routes",
      ...(gateway && {
        onCall: ({ capability }: RoutesRequest, { principal }: ExtensionCall) => gateway.routes(capability, principal),
      }),
    }),
  };
}

/**
 * Chooses the routes of a message before it is stored, so that a caller whose intent has none is told by an error of AGP (§5), and a turn that is
 * repeated takes the same way.
 */
async function routed(gateway: AgentGateway, input: AcceptedInput, { logger }: AcceptedCall): Promise<AcceptedInput> {
  const { [pathsKey]: _, ...metadata } = input.message.metadata ?? {};
  const message: Message = { ...input.message, metadata };
  const { intent, delegation, via } = readTurn(message);
  const checked = { ...input, message: withPaths(message, []) };
  if (intent === undefined && delegation === undefined) return checked;
  const count = message.parts.filter((part) => isIntentPart(part) || isDelegationPart(part)).length;
  if (count > 1) throw invalidParams([{ field: "message.parts", description: "must not hold more than one intent" }]);
  if (intent !== undefined) {
    const { path } = await gateway.route(intent, via);
    return { ...input, message: withPaths(message, [path]) };
  }
  const paths: string[] = [];
  for (const part of delegation?.sub_intents ?? []) {
    const path = await gateway.route(part, via).then(
      (route) => route.path,
      (cause: unknown) => {
        logger.info("A part of a delegation has no route", { capability: part.target_capability, cause });
        return "";
      },
    );
    paths.push(path);
  }
  return { ...input, message: withPaths(message, paths) };
}

function withPaths(message: Message, paths: readonly string[]): Message {
  const metadata = paths.length === 0 ? message.metadata : { ...message.metadata, [pathsKey]: paths };
  if (metadata !== undefined && Object.keys(metadata).length > 0) return { ...message, metadata };
  const { metadata: _, ...bare } = message;
  return bare;
}

/** What a message has of AGP. What does not fit its schema is absent. */
function readTurn({ parts, metadata }: Message): AgpTurn {
  const intent = valueOf(agpSchemas.intent, parts.find(isIntentPart)?.data);
  const delegation = valueOf(agpSchemas.delegation, parts.find(isDelegationPart)?.data);
  return {
    ...(intent !== undefined && { intent }),
    ...(delegation !== undefined && { delegation }),
    paths: textsOf(metadata, pathsKey),
    via: textsOf(metadata, viaKey),
  };
}

function textsOf(metadata: JsonObject | undefined, key: string): readonly string[] {
  const given: unknown = metadata?.[key];
  return Array.isArray(given) ? given.filter((each): each is string => typeof each === "string") : [];
}

/** A value that fits its schema; `undefined` where it does not. */
function valueOf<T>(schema: StandardSchema<T>, value: unknown): T | undefined {
  if (value === undefined) return undefined;
  const result = schema["~standard"].validate(value);
  return result instanceof Promise || result.issues !== undefined ? undefined : result.value;
}
