import type { AgentInterface } from "../../model/index.ts";
import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { ServerHost } from "./host.ts";
import type { WireError } from "./response.ts";

/**
 * A binding as a server sees it: what it is called, what cards say of it, and how it answers. `ClientBinding` is its
 * counterpart at a client.
 *
 * A binding that needs more than one HTTP request and its answer has no `http`, or more than that: the server that can
 * carry it defines the rest. `@parley/node` does so for streams of HTTP/2 and for upgraded connections.
 */
export interface ServerBinding {
  /** As a card's `protocolBinding` has it: `JSONRPC`, `HTTP+JSON`, `GRPC`, or for a custom binding a URI (A2A 1.0 §5.8, §12). */
  readonly name: string;
  /**
   * Where an agent is found by this binding in a version of the protocol: one entry on its card for each. None where the
   * binding does not speak that version. Called while the server is put together.
   */
  interfaces(agent: AgentAddress, codec: Codec): readonly InterfaceAddress[];
  /** How it answers HTTP. Absent: a host carries it in a way of its own. */
  readonly http?: HttpBinding;
}

/** Where an agent is served. */
export interface AgentAddress {
  /** URL of the agent's base, as clients reach it, without a slash at its end: `https://agents.example.com/weather`. */
  readonly url: string;
  /** Path below it that the mount gives to this binding: `""`, or with a slash at its beginning and none at its end. */
  readonly path: string;
  /** The protocol's routing label, for agents that share a base (A2A 1.0 §8.3.2). */
  readonly tenant?: string;
  /** What names the agent where a binding has no paths: its path and its tenant, `weather/berlin`. Absent: it is at the root. */
  readonly label?: string;
}

/** What a binding says of an interface; its own name and the version are added to it. */
export type InterfaceAddress = Pick<AgentInterface, "url" | "tenant">;

/** How a binding answers requests of HTTP below a base. */
export interface HttpBinding {
  /**
   * What of a base's addresses is its own. Called for each base while the server is put together: the addresses of all
   * bindings are compared, and what two would answer is refused.
   *
   * @throws A2AError `InvalidParams` for a base that it cannot serve.
   */
  claim(base: BaseAddress, codecs: readonly Codec[]): HttpClaim;
  /**
   * Begins to serve a base: `host.services` are the agents there. Where the claim has paths of tenants it is called once more
   * for each of those, and `host.services` has that tenant alone, whether or not a request names it.
   */
  open(host: ServerHost): HttpEndpoint;
}

/** A base, as a binding claims addresses of it. */
export interface BaseAddress {
  /** Path below it that the mounts there give to this binding: `""`, or with a slash at its beginning and none at its end. */
  readonly path: string;
  /** The tenants of the agents there; `undefined` for the one that has none. */
  readonly tenants: readonly (string | undefined)[];
}

/** Addresses, as paths below a base; `""` is the base itself. All of them have a slash at their beginning and none at their end. */
export interface HttpClaim {
  /** Paths that are its own, each also with a slash at its end. */
  readonly paths?: readonly ClaimedPath[];
  /** Everything at and below this path is its own that nobody claims by `paths`. */
  readonly below?: string;
  /**
   * Whether something is found at a path at or below `below`, by whatever method: no card and no other binding can be at
   * those, and a framework goes on with the others. Default: everything is answered, and others may be anywhere there.
   */
  owns?(path: string): boolean;
  /** Whether `owns` is true of any path at or below this one, where another base begins. Default: of some path below `below`. */
  reserves?(path: string): boolean;
  /**
   * Paths that clients also ask for beside the base and at the root of the host: answered where no other base is, and no
   * other base has the same.
   */
  readonly beside?: readonly string[];
}

/** A path; `tenant` where it is the address of that one alone, for versions whose requests cannot name one. */
export interface ClaimedPath {
  /** The path below the base. */
  readonly path: string;
  /** The tenant that this path is the address of. */
  readonly tenant?: string;
}

/** What answers at the addresses of a claim. A host may look for more on it, such as the upgrade of a connection. */
export interface HttpEndpoint {
  /** Answers one request; never rejects. The request has been admitted. */
  answer(request: UniversalRequest, target: Target): Promise<UniversalResponse> | UniversalResponse;
  /** An error in the binding's words, for a request that is not admitted. Default: as what nobody answers is told. */
  refuse?(error: WireError): UniversalResponse;
}

/** Where a request leads. */
export interface Target {
  /** Path below the base, or below the claim's `below` where that is what the request belongs to. */
  readonly path: string;
  /** Without the `?`. */
  readonly query: string;
}
