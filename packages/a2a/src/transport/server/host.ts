import type { Clock, Logger } from "../../base/index.ts";
import { invalidParams } from "../../model/index.ts";
import type {
  AgentService,
  BodyBudget,
  ByteBudget,
  OperationTable,
  Principal,
  UniversalRequest,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { CorsOptions } from "./cors.ts";
import type { KeepAlive } from "./keep-alive.ts";

/** What composition hands to the bindings of a server: who is served, and how. `ClientHost` is its counterpart at a client. */
export interface ServerHost {
  /** The versions that are spoken here; the first is the one that answers where none could be told. */
  readonly codecs: readonly [Codec, ...Codec[]];
  /** The operations that are served, by name. */
  readonly operations: OperationTable;
  /**
   * Checks what host a request names, and what page it comes from, before anything else; throws. Absent: any may, or whoever
   * carried the request has checked it.
   */
  readonly admit?: Admission;
  /** Finds out who calls; throws `Unauthenticated`. */
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
  /** The services that are told apart by tenant; the one under `undefined` takes requests that name none. */
  readonly services: ReadonlyMap<string | undefined, AgentService>;
  /** Limits of requests and answers. */
  readonly limits: RequestLimits;
  /** Whether a request that names no version is one of 0.3, as §3.6.2 says, instead of what its method or path says. */
  readonly strictVersion: boolean;
  /** Which pages of other origins may call, for bindings that say so themselves; the router does for all that it routes to. Absent: none. */
  readonly cors?: CorsOptions | true;
  /** Sends comments to quiet event streams. */
  readonly keepAlive: KeepAlive;
  /** Time. */
  readonly clock: Clock;
  /** Where errors are logged. */
  readonly logger: Logger;
}

/** Throws `PermissionDenied` for a request to a host, or from a page, that is not allowed. */
export type Admission = (request: UniversalRequest) => void;

/** Limits of requests and answers. */
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

/** The service that a request is for. The protocol's `tenant` is a routing label, never an identity; `""` is absent. */
export function serviceOf({ services }: Pick<ServerHost, "services">, tenant: string | undefined): AgentService {
  const service = services.get(tenant === "" ? undefined : tenant);
  if (service !== undefined) return service;
  throw invalidParams([
    tenant === undefined || tenant === ""
      ? { field: "tenant", description: "is required: the agents at this address are told apart by it" }
      : { field: "tenant", description: "names no agent at this address" },
  ]);
}
