import { A2AError } from "../../model/index.ts";
import { challenge, problemParams } from "../challenge.ts";
import { isFor } from "../guarded.ts";
import { defineScheme } from "../scheme.ts";
import type { AuthenticationPlace, Authenticator, ChallengeProblem, ProtectedResource } from "../port.ts";
import type { Principal, UniversalRequest } from "../../protocol/index.ts";
import { bindingCheck, dpopAlgorithms, type CheckBinding } from "./key-binding.ts";
import type { TokenHost, TokenOptions } from "./options.ts";
import {
  audienceOf,
  confirmationOf,
  presentedToken,
  usualPrincipal,
  WantedNonce,
  WrongToken,
  VerifiedTokens,
  type CheckedToken,
  type CheckToken,
  type Confirmation,
  type PresentedToken,
} from "./token.ts";

/** The parts that differ between authenticators for tokens. */
interface TokenScheme {
  /** The entries on the card. The same token satisfies any of them. */
  readonly schemes: Authenticator["securitySchemes"];
  readonly options: Omit<TokenOptions, "audience"> & { readonly audience?: TokenOptions["audience"] | false };
  readonly host: TokenHost;
  /** The issuer. Absent: unknown. */
  readonly issuer?: string | undefined;
  readonly check: CheckToken;
}

interface Holder {
  readonly principal: Principal;
  readonly audience: readonly string[];
  readonly confirmation: Confirmation | undefined;
}

/** Makes an authenticator for tokens. It reads them from requests, caches valid ones, and checks their audience. */
export function tokenAuthenticator({ schemes, options, host, issuer, check }: TokenScheme): Authenticator {
  const { realm, scopes = [], audience, dpop, bound, remember = 5 * 60_000 } = options;
  const names = Object.keys(schemes);
  const read = (token: CheckedToken): Promise<Holder> => holderOf(token, names, options);
  const tokens = new VerifiedTokens(check, read, host.clock, remember);
  const checkBinding = bindingCheck({ bound, dpop, clock: host.clock });
  const algorithms = dpop === undefined && bound !== "dpop" ? undefined : dpopAlgorithms(dpop);
  const offered = { realm, bearer: bound !== "dpop", algorithms };
  const challengeOf = (place: AuthenticationPlace, problem?: ChallengeProblem): string =>
    challengesOf(offered, place, problem);
  const authenticator = defineScheme({
    name: names[0] ?? "token",
    scheme: {} as never,
    resource: resourceOf(issuer, scopes, algorithms, bound),
    credentials: presentedToken,
    accessToken: ({ token }) => token,
    async verify(presented: PresentedToken, request: UniversalRequest, place) {
      try {
        const wanted = audience === undefined ? place.resources : audience;
        return await callerOf(presented, request, place, { tokens, host, wanted, checkBinding });
      } catch (thrown) {
        if (!(thrown instanceof WrongToken)) throw thrown;
        const problem = { error: thrown.error, description: thrown.message };
        const way =
          presented.scheme === "dpop" ? { ...offered, algorithms: algorithms ?? dpopAlgorithms(dpop) } : offered;
        const challenge = challengesOf(way, place, problem, thrown instanceof WantedNonce ? thrown.nonce : undefined);
        throw new A2AError("Unauthenticated", thrown.message, { challenge, cause: thrown.cause });
      }
    },
    challenge: challengeOf,
  });
  return {
    ...authenticator,
    securitySchemes: schemes,
    // With a `principal` function, the operator makes subjects of issuers distinct.
    ...(issuer !== undefined && options.principal === undefined && { subjectsOf: issuer }),
    securityRequirements: names.map((name) => ({ schemes: { [name]: { list: scopes } } })),
    challenges: (place, problem) => Object.fromEntries(names.map((name) => [name, challengeOf(place, problem)])),
  };
}

interface Offered {
  readonly realm: string | undefined;
  readonly bearer: boolean;
  /** Algorithms of proofs. Absent: proofs are not offered. */
  readonly algorithms: readonly string[] | undefined;
}

/** The challenges for tokens (RFC 6750 §3, RFC 9449 §7.1). Bindings send `dpop_nonce` as the header `DPoP-Nonce`, too. */
function challengesOf(
  { realm, bearer, algorithms }: Offered,
  { metadataUrl }: AuthenticationPlace,
  problem: ChallengeProblem | undefined,
  nonce?: string,
): string {
  const params = { realm, ...problemParams(problem), resource_metadata: metadataUrl };
  const ways = [
    ...(bearer ? [challenge("Bearer", params)] : []),
    ...(algorithms === undefined
      ? []
      : [challenge("DPoP", { ...params, algs: algorithms.join(" "), dpop_nonce: nonce })]),
  ];
  return ways.join(", ");
}

function resourceOf(
  issuer: string | undefined,
  scopes: readonly string[],
  algorithms: readonly string[] | undefined,
  bound: TokenOptions["bound"],
): ProtectedResource | undefined {
  if (issuer === undefined) return undefined;
  return {
    authorizationServers: [issuer],
    ...(scopes.length > 0 && { scopes }),
    ...(algorithms !== undefined && { dpopAlgorithms: algorithms }),
    ...(bound === "certificate" && { certificateBound: true }),
  };
}

async function holderOf(
  { claims }: CheckedToken,
  names: readonly string[],
  options: TokenScheme["options"],
): Promise<Holder> {
  const usual = usualPrincipal(claims);
  const principal = options.principal === undefined ? usual : await options.principal(claims, usual);
  if (principal === undefined) throw new WrongToken("The holder of the token is unknown");
  const audience = audienceOf(claims);
  return {
    principal: {
      ...principal,
      schemes: Object.fromEntries(names.map((name) => [name, principal.scopes ?? []])),
      // Checked again when the agent is known. With the option `audience`, a token is valid for all agents.
      ...(options.audience === undefined && { audience }),
    },
    audience,
    confirmation: confirmationOf(claims),
  };
}

interface Caller {
  readonly tokens: VerifiedTokens<Holder>;
  readonly host: TokenHost;
  /** The required audience of tokens. `false`: not checked. */
  readonly wanted: string | readonly string[] | false;
  readonly checkBinding: CheckBinding;
}

/** The caller of a request. Throws a `WrongToken` if its token is expired or for another audience. */
async function callerOf(
  presented: PresentedToken,
  request: UniversalRequest,
  place: AuthenticationPlace,
  { tokens, host, wanted, checkBinding }: Caller,
): Promise<Principal> {
  const known = tokens.get(presented.token);
  const { value: holder, expires } = known instanceof Promise ? await known : known;
  if (expires + host.tolerance <= host.clock.now()) throw new WrongToken("The token has expired");
  const { principal, audience, confirmation } = holder;
  if (wanted !== false && !isFor(audience, typeof wanted === "string" ? [wanted] : wanted)) {
    throw new WrongToken("The token is for another audience");
  }
  const proved = checkBinding(presented, confirmation, request, place);
  if (proved !== undefined) await proved;
  return principal;
}
