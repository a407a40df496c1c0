import type { CallContext, OperationName, Operations, Principal, UniversalRequest } from "../protocol/index.ts";
import type { SecurityRequirement, SecurityScheme } from "../model/index.ts";

/**
 * Finds out who calls (A2A 1.0 §7.4). It also says what the card declares. `bearer()` is one for bearer tokens.
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
   * @param place - URLs of what is called, for the audience of tokens and for challenges.
   * @throws A2AError `Unauthenticated` with a `challenge` where the caller is not known, `PermissionDenied` if a known
   * caller may not call.
   */
  authenticate(request: UniversalRequest, place: AuthenticationPlace): Promise<Principal> | Principal;
  /** Schemes for the card (A2A 1.0 §4.5.1), by name. */
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  /** Requirements for the card. Their names refer to `securitySchemes`. */
  readonly securityRequirements: readonly SecurityRequirement[];
  /** What the metadata of the protected resource says about tokens (RFC 9728). Absent: no scheme takes tokens of a known issuer. */
  readonly resource?: ProtectedResource;
  /**
   * The issuer that names its subjects: two issuers may give different people the same name. Absent: subjects are unique at this server.
   * `anyOf()` takes authenticators of one issuer at most.
   */
  readonly subjectsOf?: string;
  /**
   * Whether it needs the caller that a framework has found: the option `principal` of `expressMount` and the other mounts. `serve()` has no
   * such option, and refuses this authenticator. Default false.
   */
  readonly needsMount?: boolean;
  /**
   * Whether a request has credentials for it, right or wrong, as its headers and its connection show. `anyOf()` and `allOf()` ask, so
   * that wrong credentials are told from absent ones. Absent: `authenticate` is called, and `Unauthenticated` means that the request has none.
   */
  hasCredentials?(request: UniversalRequest): boolean;
  /** The challenges of its schemes (RFC 9110 §11.6.1), by the names of the schemes. Absent: only its errors have challenges. */
  challenges?(place: AuthenticationPlace, problem?: ChallengeProblem): Readonly<Record<string, string>>;
}

/** What a challenge says about the credentials that came (RFC 6750 §3). */
export interface ChallengeProblem {
  /** `invalid_token`, `insufficient_scope`, or another error code of the scheme. */
  readonly error: string;
  /** More about it, in printable ASCII. It must not have a part of the credentials. */
  readonly description?: string;
  /** The scopes that are needed, separated by spaces. */
  readonly scope?: string;
}

/** Where a caller authenticates. */
export interface AuthenticationPlace {
  /**
   * URLs that a token may name as its audience: those of the agents that the request can reach, and that of the server. Which
   * agent it is may be known only after authentication.
   */
  readonly resources: readonly string[];
  /** URL of the metadata of the protected resource (RFC 9728 §3), for challenges. Absent: no metadata. */
  readonly metadataUrl?: string;
  /** The URL of this request, as its sender sees it: that of the server with the path of the request. For proofs (RFC 9449 §4.3). */
  readonly url: string;
  /**
   * Names of the schemes that are demanded by skills, or by cards with requirements of their own. `anyOf()` checks credentials for these
   * even if it knows the caller already. Absent: no challenges.
   */
  readonly demanded?: readonly string[];
}

/** What an authenticator adds to the metadata of a protected resource (RFC 9728 §2). */
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
 * Finds the skill that a message is for; `undefined` if it names none. The protocol has no field for it. Must be quick, and must not
 * throw. What it returns counts only if it is the id of a skill on the card.
 */
export type SkillOf = (request: Operations["SendMessage"]["request"], context: CallContext) => string | undefined;

/** One call that an authorizer decides about, before any work is done for it. */
export interface AuthorizerRequest {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The caller that the authenticator returned. */
  readonly principal: Principal;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** The task that the request names. It need not exist. Absent: the request names none. */
  readonly taskId?: string | undefined;
  /** The context that the request names. It need not exist. Absent: the request names none. */
  readonly contextId?: string | undefined;
  /** The tasks that a message refers to (`Message.referenceTaskIds`). They need not exist. Absent: it refers to none. */
  readonly referenceTaskIds?: readonly string[] | undefined;
  /** The webhook configuration that the request names. It need not exist. Absent: the request names none. */
  readonly configId?: string | undefined;
  /** The skill that the request is for, as `skillOf` of the handler found it. Absent: none was named. */
  readonly skill?: string | undefined;
  /** The context of the call: its version, its extensions, its headers. */
  readonly context: CallContext;
}

/**
 * What an authorizer answers.
 * - `allow`: the call continues.
 * - `deny`: the caller gets `PermissionDenied`.
 * - `hide`: the caller gets what it would get if it had no such task: `TaskNotFound`, or an empty list. A call that neither names
 *   a task nor lists tasks cannot be hidden, and is denied.
 */
export type Access = "allow" | "deny" | "hide";

/**
 * Decides whether a caller may make a call (A2A 1.0 §7.5). It need not check who owns a task: the tasks of other owners do
 * not exist for a caller, whatever is allowed.
 *
 * Only `"allow"` lets the call through. On anything but `"allow"` and `"hide"` the caller gets `PermissionDenied`. It may throw
 * an `A2AError` to say more; any other error is an `InternalError` to the caller.
 *
 * @example
 * ```ts
 * const readers: Authorizer = ({ operation, principal }) =>
 *   operation.startsWith("Get") || principal.scopes?.includes("write") ? "allow" : "deny";
 * ```
 */
export type Authorizer = (request: AuthorizerRequest) => Access | Promise<Access>;
