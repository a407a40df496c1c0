import type { Clock, Logger } from "../../base/index.ts";
import { A2AError, invalidParams, type AgentInterface } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import type {
  AgentService,
  BodyBudget,
  ByteBudget,
  FileReceiver,
  MethodRoute,
  OperationTable,
  Principal,
  UniversalRequest,
  UniversalResponse,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { OpenCalls } from "./context.ts";
import type { Admission, CorsOptions } from "./origins.ts";
import type { KeepAlive } from "./event-stream.ts";
import type { WireError } from "./response.ts";

/* The interface of server bindings, their dependencies, and functions that most bindings need. */

/**
 * A binding at a server: its name, its entries on cards, and how it answers. `ClientBinding` is its counterpart at a client.
 *
 * `http` covers requests that have one answer each. For anything else, a host extends this interface, as `@parley/node` does
 * for streams of HTTP/2 and for upgraded connections.
 */
export interface ServerBinding {
  /** The `protocolBinding` on cards: `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding (A2A 1.0 §5.8, §12). */
  readonly name: string;
  /** The entries of an agent on its card for one version; empty if the binding does not support the version. Called while the server is created. */
  interfaces(agent: AgentAddress, codec: Codec): readonly InterfaceAddress[];
  /** Answers HTTP requests. Absent if a host that knows this binding serves it in another way. */
  readonly http?: HttpBinding;
}

/** The address of an agent. */
export interface AgentAddress {
  /** URL of the agent's base for clients, without a slash at its end: `https://agents.example.com/weather`. */
  readonly url: string;
  /** Path of this binding below the base, from `AgentMount.interfaces`: `""`, or with a leading slash and no slash at its end. */
  readonly path: string;
  /** The protocol's routing label, for agents that share a base (A2A 1.0 §8.3.2). */
  readonly tenant?: string;
  /** Name of the agent for bindings without paths: path and tenant, such as `weather/berlin`. Absent for an agent at the root. */
  readonly label?: string;
}

/** One entry on a card. The server adds the name of the binding and the version. */
export type InterfaceAddress = Pick<AgentInterface, "url" | "tenant">;

/** The HTTP interface of a binding, for requests below a base. */
export interface HttpBinding {
  /**
   * The paths of a base that this binding claims. Called for each base while the server is created. The server compares the claims of all
   * bindings, and rejects two claims for the same path.
   *
   * @throws A2AError `InvalidParams` for a base that the binding cannot serve.
   */
  claim(base: BaseAddress, codecs: readonly Codec[]): HttpClaim;
  /**
   * Starts to serve a base with the agents in `host.services`. Called again for each claimed path of a tenant, with only that
   * tenant, which also serves requests without a tenant.
   */
  open(host: ServerHost): HttpEndpoint;
}

/** A base at which a binding claims paths. */
export interface BaseAddress {
  /** Path of this binding below the base, from `AgentMount.interfaces`: `""`, or with a leading slash and no slash at its end. */
  readonly path: string;
  /** The tenants of the agents at the base; `undefined` for the agent without a tenant. */
  readonly tenants: readonly (string | undefined)[];
  /** The methods of extensions, as in `ServerHost.methods`. Default: none. */
  readonly methods?: readonly MethodRoute[];
}

/** Claimed paths below a base. `""` is the base itself. Other paths have a leading slash and no trailing slash. */
export interface HttpClaim {
  /** Single paths. Each path is also claimed with a trailing slash. */
  readonly paths?: readonly ClaimedPath[];
  /** Claims everything at and below this path, except for `paths` of other bindings. */
  readonly below?: string;
  /**
   * Whether the binding serves a path at or below `below`. Cards and other bindings cannot have such a path; frameworks get the other paths.
   * Default: the binding answers everything there, but others may claim any of these paths.
   */
  owns?(path: string): boolean;
  /** Whether `owns` is true for any path at or below the given path, where no other base can then be. Default: true for every `below`. */
  reserves?(path: string): boolean;
  /** Further paths that some clients try next to the base and at the root. Served unless another base has or claims the same path. */
  readonly beside?: readonly string[];
}

/** A path that a binding claims. */
export interface ClaimedPath {
  /** The path below the base. */
  readonly path: string;
  /** The only tenant at this path, for versions whose requests cannot name a tenant. */
  readonly tenant?: string;
  /** Whether a GET or HEAD that accepts HTML gets the page of the agent here. The binding gets all other requests. Default false. */
  readonly page?: boolean;
}

/** Answers the requests to claimed paths. A host may look for further members, such as `upgrade` of `UpgradeEndpoint`. */
export interface HttpEndpoint {
  /** Answers one request. Must not reject. The request has been admitted. */
  answer(request: UniversalRequest, target: Target): Promise<UniversalResponse> | UniversalResponse;
  /** Writes the error for a request that is not admitted, in the format of the binding. Default: a plain HTTP error. */
  refuse?(error: WireError, request: UniversalRequest): UniversalResponse | Promise<UniversalResponse>;
}

/** Path and query of a request, relative to the claim that it belongs to. */
export interface Target {
  /** Path below the base, or below `HttpClaim.below` if that claim matched. */
  readonly path: string;
  /** The query, without the `?`. */
  readonly query: string;
}

/**
 * A binding that recognizes its requests by their headers at any path, as gRPC does. Opened once; `host.services` has all agents by label.
 */
export interface AnyPathBinding extends ServerBinding {
  /** Starts to serve. Called once per server. */
  openAnyPath(host: ServerHost): AnyPathEndpoint;
}

/** Answers the requests of a binding without paths. */
export interface AnyPathEndpoint {
  /** Whether a request belongs to this binding. Called before the path is read. */
  claims(request: UniversalRequest): boolean;
  /** Answers one request. Must not reject. The request has not been admitted yet; `answerCall` admits it. */
  answer(request: UniversalRequest): Promise<UniversalResponse> | UniversalResponse;
  /** Called when the server stops. Ends calls that would wait forever, such as a watch of the server's health. */
  close?(): void;
}

/** Whether a binding recognizes its requests by their headers, at any path. */
export function isAnyPath(binding: ServerBinding): binding is AnyPathBinding {
  return "openAnyPath" in binding;
}

/** The dependencies of server bindings: the agents, and how requests are handled. `ClientHost` is its counterpart at a client. */
export interface ServerHost {
  /** The versions that the server speaks. The first codec writes the errors of requests whose version is unknown. */
  readonly codecs: readonly [Codec, ...Codec[]];
  /** The operations that are served, by name. */
  readonly operations: OperationTable;
  /** The methods of extensions, which are also in `operations`. An agent rejects methods of extensions that it lacks. Default: none. */
  readonly methods?: readonly MethodRoute[];
  /**
   * Checks the host name and the page origin of a request before anything else. Absent if the server's host checks them, or all are allowed.
   */
  readonly admit?: Admission;
  /** Authenticates the caller of a request; throws `Unauthenticated`. */
  authenticate(request: UniversalRequest): Principal | Promise<Principal>;
  /** Whether the server can take requests, because the store can be read and the server is not closing. Never rejects. */
  readiness?(): Promise<"ready" | "closing" | "unavailable">;
  /** The services by tenant. The service under `undefined` gets the requests that name no tenant. */
  readonly services: ReadonlyMap<string | undefined, AgentService>;
  /** Counts the open calls of each service. If absent, calls are not counted. */
  readonly calls?: OpenCalls;
  /** Limits of requests and answers. */
  readonly limits: RequestLimits;
  /** Extracts large files from messages while they are being received. If absent, bodies are read whole. */
  readonly receiver?: FileReceiver;
  /** Whether a request without a version has version 0.3 (A2A 1.0 §3.6.2). If false, its method or path determines the version. */
  readonly strictVersion: boolean;
  /** The origins that may call, for bindings that send CORS headers themselves. The router does so for all other bindings. Absent: no CORS. */
  readonly cors?: CorsOptions | true;
  /** Called by bindings that send CORS headers themselves, for each request with a rejected `Origin`, for the log. */
  readonly refusedOrigin?: (request: UniversalRequest) => void;
  /** Sends comments to quiet event streams. */
  readonly keepAlive: KeepAlive;
  /**
   * For hosts of the Fetch API that run code only during requests. `ended` resolves when the answer is written; `platform` has the runtime's
   * further arguments.
   */
  readonly attend?: (ended: Promise<void>, platform: readonly unknown[]) => void;
  /** The server's clock. */
  readonly clock: Clock;
  /** The server's log. */
  readonly logger: Logger;
}

/** Limits of requests and answers. */
export interface RequestLimits {
  /** Maximum size of a request body in bytes. */
  readonly bodyBytes: number;
  /** Maximum nesting of a request. */
  readonly depth: number;
  /** The memory that all bodies share while they are received. No limit if absent. */
  readonly unfinished?: BodyBudget;
  /** The memory that all answers share until their readers have taken them. No limit if absent. */
  readonly answers?: ByteBudget;
}

/** The codecs that a binding can speak, in order of preference. Throws `InvalidParams` if the binding supports none of the server's codecs. */
export function speakers<T extends Codec>(
  name: string,
  codecs: readonly Codec[],
  speaks: (codec: Codec) => codec is T,
): readonly [T, ...T[]] {
  const [first, ...others] = codecs.filter(speaks);
  if (first !== undefined) return [first, ...others];
  const versions = codecs.map(({ version }) => version).join(", ");
  throw cannotServe("bindings", `has ${name}, which does not support the versions of this server: ${versions}`);
}

/** The card's entry for a binding with a URL. The tenant is in the entry, or in the URL if requests have no tenant field. */
export function interfaceAt({ url, path, tenant }: AgentAddress, codec: Codec): InterfaceAddress {
  if (tenant === undefined) return { url: url + path };
  return codec.tenantInPath === true ? { url: tenantPath(url + path, tenant) } : { url: url + path, tenant };
}

/** The path of one tenant below a path. */
export function tenantPath(path: string, tenant: string): string {
  return `${path}/${encodeURIComponent(tenant)}`;
}

/** The rest of a path that is at or below `outer`; `undefined` for any other path. */
export function pathBelow(path: string, outer: string): string | undefined {
  return path === outer || path.startsWith(`${outer}/`) ? path.slice(outer.length) : undefined;
}

/** Starts to serve a binding without paths. */
export function openAnyPath(binding: AnyPathBinding, host: ServerHost): AnyPathEndpoint {
  return returned(
    binding.name,
    "openAnyPath",
    () => binding.openAnyPath(host),
    (endpoint) => isObject(endpoint) && hasFunction(endpoint, "claims") && hasFunction(endpoint, "answer"),
    "an endpoint, which has the functions claims() and answer()",
  );
}

/** Starts to serve a base with a binding. */
export function openHttp(name: string, http: HttpBinding, host: ServerHost): HttpEndpoint {
  const isEndpoint = (endpoint: unknown): boolean => isObject(endpoint) && hasFunction(endpoint, "answer");
  return returned(name, "open", () => http.open(host), isEndpoint, "an endpoint, which has the function answer()");
}

/** Whether a value has a function. */
export function hasFunction(value: object, name: string): boolean {
  return typeof Reflect.get(value, name) === "function";
}

/**
 * Calls a function of a binding while a server is created, and checks its result.
 *
 * @param isValid - Called with any value, because a binding may be written in JavaScript.
 * @param wanted - Describes the required result, for the error.
 * @throws A2AError `InvalidParams` that names the binding, if the function throws or returns anything else. An `A2AError` of the
 * function itself is passed on.
 */
export function returned<T>(
  binding: string,
  name: string,
  run: () => T,
  isValid: (value: unknown) => boolean,
  wanted: string,
): T {
  let problem = `must return ${wanted}`;
  let reason: unknown;
  try {
    const value: unknown = run();
    if (isValid(value)) return value as T;
    // An unhandled rejection would end the process.
    if (value instanceof Promise) value.catch(() => {});
  } catch (cause) {
    if (cause instanceof A2AError) throw cause;
    problem = `failed: ${cause instanceof Error ? cause.message : typeof cause}`;
    reason = cause;
  }
  const description = `${name}() ${problem}`;
  throw new A2AError("InvalidParams", `This cannot be served: ${binding}: ${description}`, {
    fields: [{ field: binding, description }],
    cause: reason,
  });
}

/** The error for an invalid option of a server. `sentence` is the problem, by default the field and the description. */
export function cannotServe(field: string, description: string, sentence = `${field} ${description}`): A2AError {
  return invalidParams([{ field, description }], `This cannot be served: ${sentence}`);
}
