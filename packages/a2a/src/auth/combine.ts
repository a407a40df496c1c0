import { A2AError, hasCode, invalidParams, type SecurityRequirement, type SecurityScheme } from "../model/index.ts";
import { anonymous, carryVerifiedToken, unmet, type Principal, type UniversalRequest } from "../protocol/index.ts";
import { unauthenticated } from "./challenge.ts";
import type { AuthenticationPlace, Authenticator, ProtectedResource } from "./port.ts";
import { vouched } from "./guarded.ts";

/* Combines authenticators. The `securityRequirements` of a card are alternatives, and each is a set of schemes. */

/**
 * Accepts a caller if one of the authenticators does. The card lists their requirements as alternatives.
 *
 * Invalid credentials are rejected even if `anyone()` is one of the authenticators. Without credentials, the answer has the challenges of all of
 * them.
 *
 * A skill, or a card with its own requirements, may demand the scheme of another authenticator. `anyOf()` then checks its
 * credentials, too. If they name the same subject and organization, it only adds their scheme to `Principal.schemes`.
 *
 * @throws A2AError `InvalidParams` if two schemes have the same name, or if two issuers could use the same subject for different
 * people: set their option `principal`, so that subjects differ.
 *
 * @example
 * ```ts
 * const authenticator = anyOf(apiKey({ "key-of-ada": { subject: "ada" } }), bearer({ "token-of-bob": { subject: "bob" } }));
 * ```
 */
export function anyOf(...members: readonly Authenticator[]): Authenticator {
  const subjectsOf = issuerOf(members);
  return {
    ...joined(members),
    ...(subjectsOf !== undefined && { subjectsOf }),
    securityRequirements: members.flatMap(({ securityRequirements }) => securityRequirements),
    authenticate(request, place) {
      const answers = members.map((member) => member.hasCredentials?.(request));
      const tried = answers.includes(true) ? members.filter((_, at) => answers[at] !== false) : members;
      return first(tried, request, place);
    },
  };
}

/** The issuer of the subjects of all members. Throws if there are several. */
function issuerOf(members: readonly Authenticator[]): string | undefined {
  const [one, other] = [...new Set(members.flatMap(({ subjectsOf }) => subjectsOf ?? []))];
  if (other === undefined) return one;
  const description = `accept issuers ${one} and ${other}, which may use the same subject for different people. Set an organization for each with the option \`principal\``;
  throw invalidParams([{ field: "members", description }], `These authenticators ${description}`);
}

/**
 * The first member that accepts the caller names the caller. Later members are only used for schemes that a skill or a card
 * demands. A caller that lacks scopes is returned only if no member accepts it fully: the check against the card then rejects it.
 */
async function first(
  members: readonly Authenticator[],
  request: UniversalRequest,
  place: AuthenticationPlace,
): Promise<Principal> {
  const refusals: A2AError[] = [];
  const others: Principal[] = [];
  let caller: Principal | undefined;
  for (const member of members) {
    if (caller !== undefined && !canAdd(member, caller, place)) continue;
    try {
      const principal = vouched(member, await member.authenticate(request, place));
      if (caller === undefined && unmet(member.securityRequirements, principal) === undefined) caller = principal;
      else others.push(principal);
    } catch (thrown) {
      if (!(thrown instanceof A2AError)) throw thrown;
      refusals.push(thrown);
    }
  }
  if (caller !== undefined) return others.reduce((one, other) => withSchemes(one, other, place), caller);
  const [lacking] = others;
  if (lacking !== undefined) return lacking;
  // A temporary error takes precedence over a challenge, because the credentials may be valid.
  const firm = refusals.find((error) => !hasCode(error, "Unauthenticated", "PermissionDenied"));
  throw firm ?? refusals.find((error) => hasCode(error, "PermissionDenied")) ?? merged(refusals);
}

/** Whether a member has a demanded scheme that the caller has not satisfied yet. */
function canAdd(
  { securitySchemes }: Authenticator,
  { schemes }: Principal,
  { demanded }: AuthenticationPlace,
): boolean {
  return demanded?.some((name) => Object.hasOwn(securitySchemes, name) && !has(schemes, name)) === true;
}

/**
 * The caller, with further demanded schemes that it has satisfied. Credentials of another caller do not count: otherwise a client with
 * one caller's key and another's token could combine the rights of both.
 */
function withSchemes(caller: Principal, other: Principal, { demanded = [] }: AuthenticationPlace): Principal {
  const isSame = caller.subject === other.subject && caller.organization === other.organization;
  const added = Object.entries(other.schemes ?? {}).filter(
    ([name]) => demanded.includes(name) && !has(caller.schemes, name),
  );
  if (!isSame || added.length === 0 || caller.schemes === undefined) return caller;
  const audience = audienceOf(caller, other);
  const made: Principal = {
    ...caller,
    schemes: { ...caller.schemes, ...Object.fromEntries(added) },
    ...(audience !== undefined && { audience }),
  };
  return carryVerifiedToken(made, caller, other);
}

function has(schemes: Principal["schemes"], name: string): boolean {
  return schemes !== undefined && Object.hasOwn(schemes, name);
}

function merged(refusals: readonly A2AError[]): A2AError {
  const [one] = refusals;
  if (refusals.length === 1 && one !== undefined) return one;
  return unauthenticated(
    one?.message,
    refusals.map(({ challenge }) => challenge),
  );
}

/**
 * Accepts a caller only if every authenticator does. The first one names the caller; scopes and claims are merged. The card lists every
 * combination of their requirements.
 *
 * @throws A2AError `InvalidParams` if two schemes have the same name.
 *
 * @example
 * ```ts
 * const authenticator = allOf(bearer({ "token-of-ada": { subject: "ada" } }), apiKey({ "key-of-app": { subject: "app" } }));
 * ```
 */
export function allOf(...members: readonly Authenticator[]): Authenticator {
  const subjectsOf = members[0]?.subjectsOf;
  return {
    ...joined(members),
    ...(subjectsOf !== undefined && { subjectsOf }),
    securityRequirements: members.reduce<readonly SecurityRequirement[]>(
      (all, { securityRequirements }) => all.flatMap((one) => securityRequirements.map((other) => both(one, other))),
      [{ schemes: {} }],
    ),
    async authenticate(request, place) {
      const found: Principal[] = [];
      const absent: A2AError[] = [];
      for (const member of members) {
        try {
          found.push(vouched(member, await member.authenticate(request, place)));
        } catch (thrown) {
          // Invalid credentials take precedence over missing ones.
          if (!hasCode(thrown, "Unauthenticated") || member.hasCredentials?.(request) === true) throw thrown;
          absent.push(thrown);
        }
      }
      if (absent.length > 0) throw merged(absent);
      return found.reduce(together);
    },
  };
}

function both({ schemes: one = {} }: SecurityRequirement, { schemes: other = {} }: SecurityRequirement) {
  const lists: Record<string, { readonly list: readonly string[] }> = {};
  for (const [name, { list = [] }] of [...Object.entries(one), ...Object.entries(other)]) {
    lists[name] = { list: [...new Set([...(lists[name]?.list ?? []), ...list])] };
  }
  return { schemes: lists };
}

function together(one: Principal, other: Principal): Principal {
  const scopes = [...new Set([...(one.scopes ?? []), ...(other.scopes ?? [])])];
  const places = audienceOf(one, other);
  const made: Principal = {
    ...one,
    ...(scopes.length > 0 && { scopes }),
    ...((one.claims !== undefined || other.claims !== undefined) && { claims: { ...other.claims, ...one.claims } }),
    schemes: { ...other.schemes, ...one.schemes },
    ...(places !== undefined && { audience: places }),
  };
  return carryVerifiedToken(made, one, other);
}

/** The audience that two principals have in common. `undefined`: everywhere. */
function audienceOf({ audience }: Principal, { audience: other }: Principal): readonly string[] | undefined {
  return audience && other ? other.filter((url) => audience.includes(url)) : (audience ?? other);
}

/**
 * Accepts callers without credentials, as `anonymous`: for agents that need credentials only for some skills. Put it last in `anyOf()`. All callers
 * without credentials share their tasks.
 *
 * @example
 * ```ts
 * const authenticator = anyOf(bearer({ token: { subject: "ada" } }), anyone());
 * ```
 */
export function anyone(): Authenticator {
  return {
    securitySchemes: {},
    securityRequirements: [{ schemes: {} }],
    hasCredentials: () => false,
    authenticate: () => anonymous,
  };
}

type Joined = Pick<Authenticator, "securitySchemes" | "resource" | "needsMount" | "hasCredentials" | "challenges">;

function joined(members: readonly Authenticator[]): Joined {
  if (members.length === 0) {
    throw invalidParams([{ field: "members", description: "must have at least one authenticator" }]);
  }
  const securitySchemes: Record<string, SecurityScheme> = {};
  for (const [name, scheme] of members.flatMap((member) => Object.entries(member.securitySchemes))) {
    // One authenticator may be in several combinations.
    if (Object.hasOwn(securitySchemes, name) && securitySchemes[name] !== scheme) {
      const description = `has two schemes with the name ${JSON.stringify(name)}. Set the option \`name\` of one of them`;
      throw invalidParams([{ field: "securitySchemes", description }], `This combination ${description}`);
    }
    securitySchemes[name] = scheme;
  }
  const resource = members
    .flatMap((member) => member.resource ?? [])
    .reduce<ProtectedResource | undefined>(merge, undefined);
  return {
    securitySchemes,
    ...(resource !== undefined && { resource }),
    ...(members.some(({ needsMount }) => needsMount === true) && { needsMount: true }),
    // Present only if every member has it.
    ...(members.every((member) => member.hasCredentials !== undefined) && {
      hasCredentials: (request: UniversalRequest) => members.some((member) => member.hasCredentials?.(request)),
    }),
    challenges: (place, problem) =>
      Object.fromEntries(members.flatMap((member) => Object.entries(member.challenges?.(place, problem) ?? {}))),
  };
}

function merge(one: ProtectedResource | undefined, other: ProtectedResource): ProtectedResource {
  if (one === undefined) return other;
  const union = (a: readonly string[] = [], b: readonly string[] = []): readonly string[] => [...new Set([...a, ...b])];
  const scopes = union(one.scopes, other.scopes);
  const dpopAlgorithms = union(one.dpopAlgorithms, other.dpopAlgorithms);
  return {
    authorizationServers: union(one.authorizationServers, other.authorizationServers),
    ...(scopes.length > 0 && { scopes }),
    ...(dpopAlgorithms.length > 0 && { dpopAlgorithms }),
    ...((one.certificateBound === true || other.certificateBound === true) && { certificateBound: true }),
  };
}
