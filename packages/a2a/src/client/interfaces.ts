import type { Logger } from "../base/index.ts";
import { A2AError, type AgentCard, type AgentInterface } from "../model/index.ts";
import { type AgentService, type CallContext, type OperationName, operations } from "../protocol/index.ts";
import type { ClientBinding, ClientHost } from "../transport/http/index.ts";
import { neverProcessed } from "./retry.ts";

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
 * (A2A 1.0 §8.3.2). Throws when there is none.
 */
export function candidatesOf(
  card: AgentCard,
  bindings: readonly ClientBinding[],
  choice: InterfaceChoice,
  host: ClientHost,
): readonly Candidate[] {
  const reasons: string[] = [];
  const candidates: Candidate[] = [];
  for (const target of card.supportedInterfaces) {
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
      candidates.push({
        target: spoken,
        service: withTenant(binding.open(target, version, host, card), target.tenant),
      });
    }
  }
  const age = ({ target }: Candidate): number => Number(target.protocolVersion);
  if (candidates.length > 0) return candidates.sort((one, other) => age(other) - age(one));
  const offer = reasons.join("; ") || "it lists none";
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

/** Whether the interface itself is no good, rather than this one request of it. */
function isDead(error: A2AError): boolean {
  switch (error.code) {
    case "ConnectionFailed":
    case "Timeout":
    case "Unavailable":
    case "MethodNotAllowed":
    case "MethodNotFound":
    case "VersionNotSupported":
      return true;
    case "InvalidResponse":
      return error.metadata["httpStatus"] !== undefined;
    default:
      return false;
  }
}

/**
 * One service over the candidates: the first that answers is kept. A request that may have reached a dead interface is
 * never sent to another one, unless repeating it does no harm; the next request then goes to the next interface.
 */
export function firstAlive(
  candidates: readonly Candidate[],
  logger: Logger,
): { service: AgentService; chosen(): AgentInterface } {
  let current = 0;
  let proven = false;

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
        logger.warn("An interface of the card is dead", { url: candidates[mine]?.target.url, cause: thrown });
        // With the last one all are dead: the next request begins anew.
        if (current === mine) current = last ? 0 : mine + 1;
        const safe = operations[operation].idempotent || neverProcessed(thrown);
        if (last || !safe) throw thrown;
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
