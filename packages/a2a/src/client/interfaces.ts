import type { Logger } from "../base/index.ts";
import { A2AError, type A2AErrorOptions, type AgentCard, type AgentInterface } from "../model/index.ts";
import { type AgentService, type CallContext, type OperationName, operations } from "../protocol/index.ts";
import type { ClientBinding, ClientHost } from "../transport/http/index.ts";
import { noHeaders } from "./card.ts";
import { neverProcessed } from "./retry.ts";

/** How many interfaces of a card are looked at. */
const mostInterfaces = 100;

export interface InterfaceChoice {
  /** Only interfaces of this binding, as cards name it: `JSONRPC`, `HTTP+JSON`. */
  readonly binding?: string;
  /** Only interfaces of this version, `Major.Minor`; a draft, such as `1.1`, is asked of those of the version it grows from. */
  readonly version?: string;
}

interface Candidate {
  readonly target: AgentInterface;
  readonly service: AgentService;
}

/** `Major.Minor`: patch numbers mean nothing (A2A 1.0 §3.6). */
function minor(version: string): string {
  return version.split(".", 2).join(".");
}

function unusable(url: string): string | undefined {
  try {
    const { protocol } = new URL(url);
    return protocol === "http:" || protocol === "https:" ? undefined : "is no http(s) address";
  } catch {
    // A2A 1.0 §4.4.6.
    return "is no absolute address";
  }
}

/** A minor version adds to the one before it: a later one can be asked for where an earlier one is listed. */
function versionOf({ protocolVersion }: AgentInterface, choice: InterfaceChoice): string {
  const listed = minor(protocolVersion);
  const asked = minor(choice.version ?? listed);
  // Before 1.0 every minor version was another protocol. Majors are of one digit.
  return listed >= "1" && listed[0] === asked[0] && Number(listed) < Number(asked) ? asked : listed;
}

/**
 * The interfaces of a card that can be talked to: the newest version first, those of one version in the card's order
 * (A2A 1.0 §8.3.2). Throws when there is none. `trusted` are the origins that get credentials; `undefined`: all do.
 */
export function candidatesOf(
  card: AgentCard,
  bindings: readonly ClientBinding[],
  choice: InterfaceChoice,
  host: ClientHost,
  trusted: readonly (string | undefined)[] | undefined,
): readonly Candidate[] {
  const reasons: string[] = [];
  const candidates: Candidate[] = [];
  for (const target of card.supportedInterfaces.slice(0, mostInterfaces)) {
    const version = versionOf(target, choice);
    const binding = bindings.find((one) => one.name === target.protocolBinding && one.versions.includes(version));
    const asked =
      (choice.binding ?? target.protocolBinding) === target.protocolBinding &&
      minor(choice.version ?? version) === version;
    const wrong = !asked
      ? "was not asked for"
      : binding === undefined
        ? "is not spoken here"
        : (binding.unusable ?? unusable)(target.url);
    if (binding === undefined || wrong !== undefined) {
      reasons.push(`${target.protocolBinding} ${target.protocolVersion} at ${JSON.stringify(target.url)} ${wrong}`);
    } else {
      const spoken = { ...target, protocolVersion: version };
      const origin = binding.origin?.(target.url, card) ?? new URL(target.url).origin;
      const withheld = trusted?.includes(origin) === false;
      const service = binding.open(target, version, withheld ? { ...host, headers: noHeaders } : host, card);
      const tenanted = withTenant(service, target.tenant);
      candidates.push({ target: spoken, service: withheld ? withoutHeaders(tenanted, origin, host) : tenanted });
    }
  }
  const age = ({ target }: Candidate): number => Number(target.protocolVersion);
  if (candidates.length > 0) return candidates.sort((one, other) => age(other) - age(one));
  const offer = reasons.join("; ").slice(0, 2_000) || "it lists none";
  throw new A2AError("InvalidResponse", `The card of ${JSON.stringify(card.name)} has no interface to use: ${offer}`);
}

/** Every request carries exactly the tenant of its interface (A2A 1.0 §8.3.2). */
function withTenant(service: AgentService, tenant: string | undefined): AgentService {
  function tenanted<T extends { readonly tenant?: string }>(request: T): T {
    const { tenant: _, ...rest } = request;
    return (tenant === undefined || tenant === "" ? rest : { tenant, ...rest }) as T;
  }
  return {
    call: (operation, request, context) => service.call(operation, tenanted(request), context),
    stream: (operation, request, context) => service.stream(operation, tenanted(request), context),
  };
}

/**
 * Credentials belong to the origin that the user named: a card, a redirected one too, may name any other (D18). What is
 * refused for want of them says so, and `metadata.withheldFrom` is the origin.
 */
function withoutHeaders(service: AgentService, origin: string, { headers }: ClientHost): AgentService {
  async function run<T>(context: CallContext, call: (context: CallContext) => Promise<T>): Promise<T> {
    const { headers: given, ...outgoing } = context.outgoing ?? {};
    try {
      return await call({ ...context, outgoing });
    } catch (thrown) {
      const refused =
        thrown instanceof A2AError && (thrown.code === "Unauthenticated" || thrown.code === "PermissionDenied");
      if (!refused || (headers === noHeaders && given === undefined)) throw thrown;
      const why = `Headers were not sent to ${origin}, which the card names and you do not; credentialOrigins lets it have them`;
      throw again(thrown, `${thrown.message}. ${why}`, { withheldFrom: origin });
    }
  }
  return {
    call: (operation, request, context) => run(context, (mine) => service.call(operation, request, mine)),
    stream: (operation, request, context) => run(context, (mine) => service.stream(operation, request, mine)),
  };
}

/** The same error with more to say. */
function again(error: A2AError, message: string, metadata: Readonly<Record<string, string>>): A2AError {
  const told: A2AErrorOptions = error;
  return new A2AError(error.code, message, { ...told, metadata: { ...error.metadata, ...metadata }, cause: error });
}

/** Whether the interface itself is no good, rather than this one request of it. */
function isDead(error: A2AError): boolean {
  if (error.code === "InvalidResponse") return error.metadata["httpStatus"] !== undefined;
  return /^(ConnectionFailed|Timeout|Unavailable|MethodNotAllowed|MethodNotFound|VersionNotSupported)$/.test(
    error.code,
  );
}

/**
 * One service over the candidates: the first that answers is kept. A request that may have reached a dead interface is
 * never sent to another one, unless repeating it does no harm; the next request then goes to the next interface. The
 * error of the last one says what each said. `card` is how errors call the card.
 */
export function firstAlive(
  candidates: readonly Candidate[],
  logger: Logger,
  card: string,
): { service: AgentService; chosen(): AgentInterface } {
  let current = 0;
  let proven = false;
  /** What each said. */
  const said: string[] = [];

  async function attempt<T>(
    operation: OperationName,
    context: CallContext,
    run: (service: AgentService) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const mine = current;
      try {
        const result = await run((candidates[mine] as Candidate).service);
        proven = true;
        return result;
      } catch (thrown) {
        if (!(thrown instanceof A2AError) || proven || context.signal?.aborted) throw thrown;
        if (!isDead(thrown)) {
          proven = thrown.code !== "ConnectionLost";
          throw thrown;
        }
        const last = mine === candidates.length - 1;
        const { protocolBinding, protocolVersion, url } = (candidates[mine] as Candidate).target;
        said[mine] = `${protocolBinding} ${protocolVersion} at ${url}: ${thrown.message}`;
        logger.warn("An interface of the card is dead", { url, cause: thrown });
        // With the last one all are dead: the next request begins anew.
        if (current === mine) current = last ? 0 : mine + 1;
        const safe = operations[operation].idempotent || neverProcessed(thrown);
        if (last) {
          const tried = candidates.map(({ target }) => target.url).join(" ");
          throw again(thrown, `No interface of the card ${card} works:\n  ${said.join("\n  ")}`, { tried });
        }
        if (!safe) throw thrown;
      }
    }
  }

  return {
    chosen: () => (candidates[current] as Candidate).target,
    service: {
      call: (operation, request, context) =>
        attempt(operation, context, (service) => service.call(operation, request, context)),
      stream: (operation, request, context) =>
        attempt(operation, context, (service) => service.stream(operation, request, context)),
    },
  };
}
