import type { JsonObject, StandardSchema } from "@parley/a2a/internal/model/index";
import {
  boolean,
  fail,
  filled,
  isObject,
  list,
  number,
  object,
  optional,
  record,
  required,
  string,
  strings,
  struct,
  type Schema,
} from "@parley/a2a/internal/model/schema";
import { standardSchema, jsonBytes, withoutOthers } from "@parley/a2a/internal/extensions/schemas";

/* The shapes of the Agent Gateway Protocol (AGP 1.0.0), with its names. */

/** URI of the extension. */
export const agpUri = "https://github.com/a2aproject/a2a-samples/tree/main/extensions/agp";

/** What a squad can do (AGP §1). */
export interface CapabilityAnnouncement {
  /** What it can do, such as `financial_analysis:quarterly`. */
  readonly capability: string;
  /** Version of its schema, such as `1.5`. */
  readonly version: string;
  /** What it costs, in a unit that the squads agree on, 0 or more. Absent: 0. */
  readonly cost?: number;
  /** What it guarantees or demands, such as `{ security_level: 5, requires_pii: true }`. */
  readonly policy: JsonObject;
}

/** What somebody wants to be done (AGP §2). */
export interface IntentPayload {
  /** The capability that it needs. */
  readonly target_capability: string;
  /** The data for it. */
  readonly payload: JsonObject;
  /** What the policy of a route has to be. Absent: any. */
  readonly policy_constraints?: JsonObject;
}

/** A way to a capability (AGP §3). */
export interface RouteEntry {
  /** Where it leads, such as `Squad_Finance/gateway`. */
  readonly path: string;
  /** What it costs. */
  readonly cost: number;
  /** What it guarantees or demands. */
  readonly policy: JsonObject;
}

/** The routes of a gateway, by capability (AGP §3). */
export interface AgpTable {
  /** The routes, in the order in which they were announced. */
  readonly routes: Readonly<Record<string, readonly RouteEntry[]>>;
}

/** A task that is made of several intents (the delegation of the enterprise simulation). */
export interface DelegationIntent {
  /** What is to be reached. */
  readonly meta_task: string;
  /** Its parts. Each is routed by itself. */
  readonly sub_intents: readonly IntentPayload[];
  /** Who asks. */
  readonly origin_squad: string;
}

/** What the card of a gateway says (AGP §4). */
export interface AgpParams {
  /** Its role. */
  readonly agent_role: string;
  /** The versions of AGP that it speaks. */
  readonly supported_agp_versions: readonly string[];
}

/** Longest name of a capability or a version, longest path, most parts of a delegation. */
const longestName = 256;
const longestPath = 1024;
const maxSubIntents = 32;

/** A text of 1 to some characters. */
function text(most: number): Schema<string> {
  return (value, state) =>
    typeof value === "string" && value.length > most
      ? fail(state, `must not be longer than ${most} characters`)
      : filled(value, state);
}

/** Largest policy of a route, in bytes of JSON. */
const policyBytes = 4096;

/** Largest constraints of an intent, in bytes of JSON. No policy satisfies larger ones. */
const constraintsBytes = 2 * policyBytes;

/** An object of at most so many bytes of JSON. */
function bounded(most: number): Schema<JsonObject> {
  return (value, state) =>
    isObject(value) && jsonBytes(value) > most
      ? fail(state, `must not be larger than ${most} bytes`)
      : struct(value, state);
}

const announcement: Schema<CapabilityAnnouncement> = withoutOthers(
  ["capability", "version", "cost", "policy"],
  object<CapabilityAnnouncement>({
    capability: required(text(longestName)),
    version: required(text(longestName)),
    cost: optional(number(0)),
    policy: required(bounded(policyBytes)),
  }),
);

const intent: Schema<IntentPayload> = withoutOthers(
  ["target_capability", "payload", "policy_constraints"],
  object<IntentPayload>({
    target_capability: required(text(longestName)),
    payload: required(struct),
    policy_constraints: optional(bounded(constraintsBytes)),
  }),
);

const delegation: Schema<DelegationIntent> = withoutOthers(
  ["meta_task", "sub_intents", "origin_squad"],
  object<DelegationIntent>({
    meta_task: required(string),
    sub_intents: required((value, state) =>
      Array.isArray(value) && value.length > maxSubIntents
        ? fail(state, `must not have more than ${maxSubIntents} intents`)
        : list(intent, "must not be empty")(value, state),
    ),
    origin_squad: required(string),
  }),
);

const table: Schema<AgpTable> = object<AgpTable>({
  routes: required(
    record(list(object<RouteEntry>({ path: required(string), cost: required(number()), policy: required(struct) }))),
  ),
});

/** The schemas of the shapes, for applications that read them elsewhere. */
export const agpSchemas: {
  readonly announcement: StandardSchema<CapabilityAnnouncement>;
  readonly intent: StandardSchema<IntentPayload>;
  readonly delegation: StandardSchema<DelegationIntent>;
  readonly table: StandardSchema<AgpTable>;
  readonly params: StandardSchema<AgpParams>;
} = {
  announcement: standardSchema(announcement),
  intent: standardSchema(intent),
  delegation: standardSchema(delegation),
  table: standardSchema(table),
  params: standardSchema(
    object<AgpParams>({ agent_role: required(string), supported_agp_versions: required(strings) }),
  ),
};

/** A request of `agp/announce`. */
export interface AnnounceRequest {
  /** What can be done. */
  readonly announcement: CapabilityAnnouncement;
  /** Where the route leads, as the gateway knows it. */
  readonly path: string;
  /** Names of the gateways that the announcement came through, the first one first. Absent: none. */
  readonly via?: readonly string[];
  /** After how many seconds it is no longer true, unless it is announced again. Default: as the gateway says. */
  readonly expires_in?: number;
  /**
   * Numbers what an announcer says of a route: a later announcement or withdrawal has a higher one, such as the time in milliseconds. What is
   * older than what is known is not accepted. Absent: it is the newest.
   */
  readonly sequence?: number;
}

/** An answer of `agp/announce`. */
export interface AnnounceResponse {
  /** Whether the gateway has a route now. False: the announcement has come in a circle, from too far, or after a newer one. */
  readonly accepted: boolean;
  /** After how many seconds the route expires. */
  readonly expires_in?: number;
}

/** A request of `agp/withdraw`. */
export interface WithdrawRequest {
  /** What can no longer be done. */
  readonly capability: string;
  /** Where the route leads. */
  readonly path: string;
  /** As in an announcement. Absent: it is the newest. */
  readonly sequence?: number;
}

/** An answer of `agp/withdraw`. */
export interface WithdrawResponse {
  /** Whether there was such a route of this caller. */
  readonly withdrawn: boolean;
}

/** A request of `agp/routes`. */
export interface RoutesRequest {
  /** Only routes to this capability. Absent: all. */
  readonly capability?: string;
}

/** The schemas of the methods. */
export const methodSchemas: {
  readonly announce: {
    readonly request: StandardSchema<AnnounceRequest>;
    readonly response: StandardSchema<AnnounceResponse>;
  };
  readonly withdraw: {
    readonly request: StandardSchema<WithdrawRequest>;
    readonly response: StandardSchema<WithdrawResponse>;
  };
  readonly routes: { readonly request: StandardSchema<RoutesRequest>; readonly response: StandardSchema<AgpTable> };
} = {
  announce: {
    request: standardSchema(
      object<AnnounceRequest>({
        announcement: required(announcement),
        path: required(text(longestPath)),
        via: optional(list(text(longestName))),
        expires_in: optional(number(0)),
        sequence: optional(number(0)),
      }),
    ),
    response: standardSchema(
      object<AnnounceResponse>({ accepted: required(boolean), expires_in: optional(number(0)) }),
    ),
  },
  withdraw: {
    request: standardSchema(
      object<WithdrawRequest>({
        capability: required(text(longestName)),
        path: required(text(longestPath)),
        sequence: optional(number(0)),
      }),
    ),
    response: standardSchema(object<WithdrawResponse>({ withdrawn: required(boolean) })),
  },
  routes: {
    request: standardSchema(object<RoutesRequest>({ capability: optional(text(longestName)) })),
    response: standardSchema(table),
  },
};

/** Names of gateways in metadata, and the paths that a gateway has chosen. */
export const namesSchema: StandardSchema<readonly string[]> = standardSchema(list(text(longestPath)));

/** The other paths that a gateway has found, for each intent of a message. */
export const pathListsSchema: StandardSchema<readonly (readonly string[])[]> = standardSchema(
  list(list(text(longestPath))),
);
