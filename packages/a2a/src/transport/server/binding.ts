import type { Logger } from "../../base/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type {
  AgentService,
  BodyBudget,
  ByteBudget,
  OperationTable,
  Principal,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import { invalidParams } from "../../model/index.ts";
import type { Admission } from "./hosts.ts";
import type { KeepAlive } from "../sse/keep-alive.ts";

/** What composition hands to a binding: who is served, and how. */
export interface Binding {
  /** The versions that are spoken here; the first is the one that answers where none could be told. */
  readonly codecs: readonly [Codec, ...Codec[]];
  readonly operations: OperationTable;
  /** Looks at what host a request names, and what page it comes from, before anything else; throws. Absent: any. */
  readonly admit?: Admission;
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
  /** The services that are told apart by tenant; the one under `undefined` takes requests that name none. */
  readonly services: ReadonlyMap<string | undefined, AgentService>;
  readonly limits: RequestLimits;
  /** Whether a request that names no version is one of 0.3, as §3.6.2 says, instead of what its method or path says. */
  readonly strictVersion: boolean;
  readonly logger: Logger;
}

/** Of one base URL. */
export interface HttpBinding extends Binding {
  readonly keepAlive: KeepAlive;
}

export interface RequestLimits {
  /** Largest request body in bytes. */
  readonly bodyBytes: number;
  /** Deepest nesting of a request. */
  readonly depth: number;
  /** What all bodies share while they come in. */
  readonly unfinished?: BodyBudget;
  /** What all answers share until their readers have taken them. Absent: nobody counts. */
  readonly answers?: ByteBudget;
}

/** A request's address below the base that it came to: the path empty or with its leading slash, the query without `?`. */
export interface Target {
  readonly path: string;
  readonly query: string;
}

/** Answers requests below one base; never rejects. */
export type Endpoint = (request: UniversalRequest, target: Target) => Promise<UniversalResponse>;

/** The service that a request is for. The protocol's `tenant` is a routing label (D7); `""` is absent. */
export function serviceOf(binding: Binding, tenant: string | undefined): AgentService {
  const service = binding.services.get(tenant === "" ? undefined : tenant);
  if (service !== undefined) return service;
  throw invalidParams([
    tenant === undefined || tenant === ""
      ? { field: "tenant", description: "is required: the agents at this address are told apart by it" }
      : { field: "tenant", description: "names no agent at this address" },
  ]);
}
