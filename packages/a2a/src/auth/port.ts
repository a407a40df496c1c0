import type { CallContext, OperationName, Operations, Principal, UniversalRequest } from "../protocol/index.ts";
import type { SecurityRequirement, SecurityScheme } from "../model/index.ts";

/**
 * Authenticates callers (A2A 1.0 §7.4), and defines the security schemes of the card. `bearer()` creates one for bearer tokens.
 *
 * @example
 * ```ts
 * const byKey: Authenticator = {
 *   securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "x-api-key" } } },
 *   securityRequirements: [{ schemes: { key: { list: [] } } }],
 *   authenticate(request) {
 *     if (request.header("x-api-key") === "secret") return { subject: "ada" };
 *     throw new A2AError("Unauthenticated", "The API key is missing or wrong");
 *   },
 * };
 * ```
 */
export interface Authenticator {
  /**
   * Returns the caller of a request. Do not read the body here.
   *
   * @param place - The called URLs, for the audience of tokens and for challenges.
   * @throws A2AError `Unauthenticated` with a `challenge` for missing or invalid credentials, `PermissionDenied` if the caller is known
   * but not allowed.
   */
  authenticate(request: UniversalRequest, place: AuthenticationPlace): Promise<Principal> | Principal;
  /** Schemes for the card (A2A 1.0 §4.5.1), by name. */
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  /** Requirements for the card. Their names refer to `securitySchemes`. */
  readonly securityRequirements: readonly SecurityRequirement[];
  /** Token facts for the metadata of the protected resource (RFC 9728). Absent: no scheme accepts tokens of a known issuer. */
  readonly resource?: ProtectedResource;
  /**
   * The issuer that assigns the subjects: two issuers may assign the same subject to different people. Absent: subjects are unique at this
   * server. `anyOf()` combines authenticators of at most one issuer.
   */
  readonly subjectsOf?: string;
  /**
   * Whether the authenticator needs a web framework to authenticate callers, by the option `principal` of `expressMount` and the other mounts.
   * `serve()` has no such option, and rejects the authenticator. Default false.
   */
  readonly needsMount?: boolean;
  /**
   * Whether a request has credentials for the authenticator, valid or not, in its headers or its connection. `anyOf()` and `allOf()` use it to tell
   * invalid credentials from missing ones. Absent: they call `authenticate`, and treat `Unauthenticated` as missing credentials.
   */
  hasCredentials?(request: UniversalRequest): boolean;
  /** The challenges of its schemes (RFC 9110 §11.6.1), by the names of the schemes. Absent: only its errors have challenges. */
  challenges?(place: AuthenticationPlace, problem?: ChallengeProblem): Readonly<Record<string, string>>;
}

/** The problem with credentials, for a challenge (RFC 6750 §3). */
export interface ChallengeProblem {
  /** `invalid_token`, `insufficient_scope`, or another error code of the scheme. */
  readonly error: string;
  /** A description in printable ASCII. It must not contain any part of the credentials. */
  readonly description?: string;
  /** The required scopes, separated by spaces. */
  readonly scope?: string;
}

/** The URLs and schemes for the authentication of a caller. */
export interface AuthenticationPlace {
  /**
   * URLs that a token may have as its audience: the URLs of the server and of all agents that the request may be for. Some requests name their agent
   * only in the body, which is read after authentication.
   */
  readonly resources: readonly string[];
  /** URL of the metadata of the protected resource (RFC 9728 §3), for challenges. Absent: no metadata. */
  readonly metadataUrl?: string;
  /** The URL of this request for clients: the URL of the server with the path of the request. For proofs (RFC 9449 §4.3). */
  readonly url: string;
  /**
   * Names of schemes that skills demand, or cards with their own requirements. `anyOf()` also checks credentials of these schemes if another scheme
   * has already authenticated the caller. Absent: none.
   */
  readonly demanded?: readonly string[];
}

/** An authenticator's members of the metadata of a protected resource (RFC 9728 §2). */
export interface ProtectedResource {
  /** Issuers whose tokens are accepted. */
  readonly authorizationServers: readonly string[];
  /** Scopes that callers may need. */
  readonly scopes?: readonly string[];
  /** The algorithms of DPoP proofs that are accepted. Absent: no proofs are accepted. */
  readonly dpopAlgorithms?: readonly string[];
  /** Whether tokens are bound to certificates (RFC 8705). */
  readonly certificateBound?: boolean;
}

/**
 * Finds the skill that a message is for, because the protocol has no field for it; `undefined` if the message names none. It must be fast
 * and must not throw. Results other than the id of a skill on the card are ignored.
 */
export type SkillOf = (request: Operations["SendMessage"]["request"], context: CallContext) => string | undefined;

/** A call for an authorizer to decide about, before the server does any work for the call. */
export interface AuthorizerRequest {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The caller that the authenticator returned. */
  readonly principal: Principal;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** The task that the request names. It may not exist. Absent: the request names none. */
  readonly taskId?: string | undefined;
  /** The context that the request names. It may not exist. Absent: the request names none. */
  readonly contextId?: string | undefined;
  /** The tasks that a message refers to (`Message.referenceTaskIds`). They may not exist. Absent: the request refers to no tasks. */
  readonly referenceTaskIds?: readonly string[] | undefined;
  /** The webhook configuration that the request names. It may not exist. Absent: the request names none. */
  readonly configId?: string | undefined;
  /** The skill that the request is for, as `skillOf` of the handler found it. Absent: none was named. */
  readonly skill?: string | undefined;
  /** The context of the call: its version, its extensions, its headers. */
  readonly context: CallContext;
}

/**
 * The decision of an authorizer.
 * - `allow`: the call continues.
 * - `deny`: the caller gets `PermissionDenied`.
 * - `hide`: the call is answered as if the caller had no such task: with `TaskNotFound` or an empty list. A call that neither names
 *   a task nor lists tasks cannot be hidden, and is denied.
 */
export type Access = "allow" | "deny" | "hide";

/**
 * Decides whether a caller may make a call (A2A 1.0 §7.5). It need not check who owns a task: callers never see the tasks of other
 * owners, even if an authorizer allows the call.
 *
 * Only `"allow"` permits the call. For results other than `"allow"` and `"hide"`, the caller gets `PermissionDenied`. An authorizer may
 * throw an `A2AError` with more details; for any other error, the caller gets an `InternalError`.
 *
 * @example
 * ```ts
 * const readers: Authorizer = ({ operation, principal }) =>
 *   operation.startsWith("Get") || principal.scopes?.includes("write") ? "allow" : "deny";
 * ```
 */
export type Authorizer = (request: AuthorizerRequest) => Access | Promise<Access>;
