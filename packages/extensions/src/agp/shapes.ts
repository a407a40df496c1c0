import { data, type JsonObject, type Part, type StandardSchema } from "@parley/a2a/internal/model/index";
import {
  boolean,
  fail,
  isObject,
  list,
  number,
  object,
  optional,
  record,
  required,
  type Schema,
  string,
  strings,
  struct,
} from "@parley/a2a/internal/model/schema";
import { standardSchema, withoutOthers } from "@parley/a2a/internal/extensions/schemas";
import { extensionError, type ExtensionError } from "@parley/a2a/internal/extensions/errors";
import { atMost, text } from "../shared/values.ts";

/* The shapes of the Agent Gateway Protocol (AGP 1.0.0), under its names. */

/** URI of the extension. */
export const agpUri = "https://github.com/a2aproject/a2a-samples/tree/main/extensions/agp";

/** A capability that a squad offers (AGP §1). */
export interface CapabilityAnnouncement {
  /** Name of the capability, such as `financial_analysis:quarterly`. */
  readonly capability: string;
  /** Version of its schema, such as `1.5`. */
  readonly version: string;
  /** Cost, 0 or more, in a unit that the squads agree on. Absent: 0. */
  readonly cost?: number;
  /** Guarantees and demands, such as `{ security_level: 5, requires_pii: true }`. */
  readonly policy: JsonObject;
}

/** A request for a capability (AGP §2). */
export interface IntentPayload {
  /** The required capability. */
  readonly target_capability: string;
  /** Its data. */
  readonly payload: JsonObject;
  /** Constraints on the policy of the route. Absent: none. */
  readonly policy_constraints?: JsonObject;
}

/** A route to a capability (AGP §3). */
export interface RouteEntry {
  /** Destination, such as `Squad_Finance/gateway`. */
  readonly path: string;
  /** Its cost. */
  readonly cost: number;
  /** Guarantees and demands. */
  readonly policy: JsonObject;
}

/** The routes of a gateway, by capability (AGP §3). */
export interface AgpTable {
  /** The routes, in the order of announcement. */
  readonly routes: Readonly<Record<string, readonly RouteEntry[]>>;
}

/** A task of several intents (the delegation of the enterprise simulation). */
export interface DelegationIntent {
  /** The goal. */
  readonly meta_task: string;
  /** Its parts, which are routed separately. */
  readonly sub_intents: readonly IntentPayload[];
  /** The requester. */
  readonly origin_squad: string;
}

/** `params` on the card of a gateway (AGP §4). */
export interface AgpParams {
  /** Its role. */
  readonly agent_role: string;
  /** The versions of AGP that it supports. */
  readonly supported_agp_versions: readonly string[];
}

const longestName = 256;
const longestPath = 1024;
const maxSubIntents = 32;

/** Largest policy of a route, in bytes of JSON. */
const policyBytes = 4096;

/** Largest constraints of an intent, in bytes of JSON. No policy satisfies larger ones. */
const constraintsBytes = 2 * policyBytes;

const anyObject: Schema<JsonObject> = struct;

const announcement: Schema<CapabilityAnnouncement> = withoutOthers(
  ["capability", "version", "cost", "policy"],
  object<CapabilityAnnouncement>({
    capability: required(text(longestName)),
    version: required(text(longestName)),
    cost: optional(number(0)),
    policy: required(atMost(policyBytes, anyObject)),
  }),
);

export const intentSchema: Schema<IntentPayload> = withoutOthers(
  ["target_capability", "payload", "policy_constraints"],
  object<IntentPayload>({
    target_capability: required(text(longestName)),
    payload: required(struct),
    policy_constraints: optional(atMost(constraintsBytes, anyObject)),
  }),
);

export const delegationSchema: Schema<DelegationIntent> = withoutOthers(
  ["meta_task", "sub_intents", "origin_squad"],
  object<DelegationIntent>({
    meta_task: required(string),
    sub_intents: required((value, state) =>
      Array.isArray(value) && value.length > maxSubIntents
        ? fail(state, `must not have more than ${maxSubIntents} intents`)
        : list(intentSchema, "must not be empty")(value, state),
    ),
    origin_squad: required(string),
  }),
);

const table: Schema<AgpTable> = object<AgpTable>({
  routes: required(
    record(list(object<RouteEntry>({ path: required(string), cost: required(number()), policy: required(struct) }))),
  ),
});

/** Schemas for applications that read these shapes from other sources. */
export const agpSchemas: {
  readonly announcement: StandardSchema<CapabilityAnnouncement>;
  readonly intent: StandardSchema<IntentPayload>;
  readonly delegation: StandardSchema<DelegationIntent>;
  readonly table: StandardSchema<AgpTable>;
  readonly params: StandardSchema<AgpParams>;
} = {
  announcement: standardSchema(announcement),
  intent: standardSchema(intentSchema),
  delegation: standardSchema(delegationSchema),
  table: standardSchema(table),
  params: standardSchema(
    object<AgpParams>({ agent_role: required(string), supported_agp_versions: required(strings) }),
  ),
};

/** A request of `agp/announce`. */
export interface AnnounceRequest {
  /** The offer. */
  readonly announcement: CapabilityAnnouncement;
  /** Destination of the route, as the gateway knows it. */
  readonly path: string;
  /** Names of the gateways that the announcement passed, in order. Absent: none. */
  readonly via?: readonly string[];
  /** Lifetime in seconds. Default: the gateway's. */
  readonly expires_in?: number;
  /**
   * Orders announcements and withdrawals of a route: later ones have a higher number, such as the time in milliseconds.
   * Older ones are rejected. Absent: it counts as the newest.
   */
  readonly sequence?: number;
}

/** An answer of `agp/announce`. */
export interface AnnounceResponse {
  /** Whether the gateway stored the route. False: it looped, passed too many gateways, or arrived after a newer one. */
  readonly accepted: boolean;
  /** Lifetime of the route, in seconds. */
  readonly expires_in?: number;
}

/** A request of `agp/withdraw`. */
export interface WithdrawRequest {
  /** The withdrawn capability. */
  readonly capability: string;
  /** Destination of the route. */
  readonly path: string;
  /** As in an announcement. Absent: it counts as the newest. */
  readonly sequence?: number;
}

/** An answer of `agp/withdraw`. */
export interface WithdrawResponse {
  /** Whether the caller had such a route. */
  readonly withdrawn: boolean;
}

/** A request of `agp/routes`. */
export interface RoutesRequest {
  /** Only routes to this capability. Default: all. */
  readonly capability?: string;
}

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

/** Gateway names and chosen paths in metadata. */
export const namesSchema: StandardSchema<readonly string[]> = standardSchema(list(text(longestPath)));

/** Alternative paths in metadata, per intent. */
export const pathListsSchema: StandardSchema<readonly (readonly string[])[]> = standardSchema(
  list(list(text(longestPath))),
);

/** Media type of a data part with an intent. */
export const intentMediaType = "application/vnd.agp.intent+json";

/** Media type of a data part with a delegation. */
export const delegationMediaType = "application/vnd.agp.delegation+json";

/* 0.3 has no media types for data, so a part without one is recognized by its members. */

/** Whether a data part holds an intent. */
export function isIntentPart(part: Part): boolean {
  return holds(part, intentMediaType, "target_capability");
}

/** Whether a data part holds a delegation. */
export function isDelegationPart(part: Part): boolean {
  return holds(part, delegationMediaType, "sub_intents");
}

function holds({ data: value, mediaType }: Part, own: string, member: string): boolean {
  if (value === undefined) return false;
  if (mediaType === own) return true;
  const isPlain = mediaType === undefined || mediaType === "application/json";
  return isPlain && isObject(value) && Object.hasOwn(value, member);
}

/** A data part with an intent. */
export function intentPart(value: IntentPayload): Part {
  return data(value, { mediaType: intentMediaType });
}

/** A data part with a delegation. */
export function delegationPart(value: DelegationIntent): Part {
  return data(value, { mediaType: delegationMediaType });
}

/** The errors of AGP (AGP §5). `is()` recognizes them at a client. */
export const agpErrors: {
  /** No route to the capability was announced. */
  readonly routeNotFound: ExtensionError;
  /** No route satisfies the constraints of the intent. */
  readonly policyViolation: ExtensionError;
  /** The routes have expired and could not be refreshed. */
  readonly tableStale: ExtensionError;
} = {
  routeNotFound: extensionError(agpUri, {
    reason: "AGP_ROUTE_NOT_FOUND",
    jsonrpc: -32200,
    code: "UnsupportedOperation",
    http: 404,
    grpc: "NOT_FOUND",
    message: "No route to this capability",
  }),
  policyViolation: extensionError(agpUri, {
    reason: "AGP_POLICY_VIOLATION",
    jsonrpc: -32201,
    code: "UnsupportedOperation",
    message: "No route satisfies the constraints",
  }),
  tableStale: extensionError(agpUri, {
    reason: "AGP_TABLE_STALE",
    jsonrpc: -32202,
    code: "Unavailable",
    message: "The routes have expired",
  }),
};
