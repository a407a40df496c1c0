import type { Logger } from "../base/index.ts";
import { A2AError, type AgentCard, type AgentInterface, hasCode } from "../model/index.ts";
import { type AgentService, type CallContext, type OperationName } from "../protocol/index.ts";
import type { ClientBinding, ClientHost } from "../transport/client/binding.ts";
import { noHeaders } from "./card.ts";
import { isIdempotent, neverProcessed, reworded } from "./retry.ts";

const maxInterfaces = 100;

/** Which interface of a card to use. */
export interface InterfaceChoice {
  /** Only interfaces of this binding, by the name that cards use: `JSONRPC`, `HTTP+JSON`, `GRPC` or a URI. Default: any. */
  readonly binding?: string;
  /**
   * Only interfaces of this version (`Major.Minor`). The client also requests a later minor version, such as the draft `1.1`,
   * from interfaces that list an earlier minor version of the same major version. Default: any.
   */
  readonly version?: string;
}

interface Candidate {
  readonly target: AgentInterface;
  readonly service: AgentService;
  /**
   * The origin of this interface, if the client withholds credentials from that origin. Credentials are only for the origin that the user named, but
   * a card may name any other origin.
   */
  readonly withheldFrom: string | false;
  readonly place: string;
}

/** The `Major.Minor` of a version. Patch numbers are ignored (A2A 1.0 §3.6). */
function minor(version: string): string {
  return version.split(".", 2).join(".");
}

function unusable(url: string): string | undefined {
  // A2A 1.0 §4.4.6.
  if (!URL.canParse(url)) return "is not an absolute URL";
  return /^\s*https?:/i.test(url) ? undefined : "is not an HTTP URL";
}

/** The version to speak. Minor versions only add to earlier minor versions, so the client may request a later minor version than the card lists. */
function versionOf({ protocolVersion }: AgentInterface, choice: InterfaceChoice): string {
  const listed = minor(protocolVersion);
  const asked = minor(choice.version ?? listed);
  // Before 1.0 every minor version was a different protocol. Major versions have one digit.
  return listed >= "1" && listed[0] === asked[0] && Number(listed) < Number(asked) ? asked : listed;
}

/**
 * The usable interfaces of a card, newest version first, and within a version in the order of the card (A2A 1.0 §8.3.2).
 * Throws `InvalidResponse` if no interface is usable. `trusted` are the origins that get credentials; `undefined` means all origins.
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
  for (const target of card.supportedInterfaces.slice(0, maxInterfaces)) {
    const version = versionOf(target, choice);
    const binding = bindings.find((one) => one.name === target.protocolBinding && one.versions.includes(version));
    const asked =
      (choice.binding ?? target.protocolBinding) === target.protocolBinding &&
      minor(choice.version ?? version) === version;
    const wrong = !asked
      ? "was not asked for"
      : binding === undefined
        ? "is not supported here"
        : (binding.unusable ?? unusable)(target.url);
    if (binding === undefined || wrong !== undefined) {
      reasons.push(`${target.protocolBinding} ${target.protocolVersion} at ${JSON.stringify(target.url)} ${wrong}`);
    } else {
      const spoken = { ...target, protocolVersion: version };
      const origin = binding.origin?.(target.url, card) ?? new URL(target.url).origin;
      const withheldFrom = trusted?.includes(origin) === false && origin;
      const service = binding.open(target, version, withheldFrom ? { ...host, headers: noHeaders } : host, card);
      candidates.push({ target: spoken, service, withheldFrom, place: target.protocolBinding + origin });
    }
  }
  const age = ({ target }: Candidate): number => Number(target.protocolVersion);
  if (candidates.length > 0) return candidates.sort((one, other) => age(other) - age(one));
  const offer = reasons.join("; ").slice(0, 2_000) || "it lists none";
  const asked = [choice.binding, choice.version && `version ${choice.version}`].filter((one) => one).join(", ");
  const what = `The card of ${JSON.stringify(card.name)} has no interface to use${asked && ` (asked for: ${asked})`}`;
  throw new A2AError("InvalidResponse", `${what}: ${offer}`);
}

/** The request with only the tenant of its interface (A2A 1.0 §8.3.2). */
function tenanted<T extends { readonly tenant?: string }>(request: T, { tenant }: AgentInterface): T {
  const { tenant: _, ...rest } = request;
  return (tenant ? { tenant, ...rest } : rest) as T;
}

/** Whether there was no answer at all. An older version at the same URL would not answer either. */
const isSilence = (error: A2AError): boolean => hasCode(error, "ConnectionFailed", "Timeout", "Unavailable");

/** Whether the interface does not work at all, so that the client tries the next interface. */
function isDead(error: A2AError): boolean {
  if (error.code === "InvalidResponse") return error.metadata["httpStatus"] !== undefined;
  return isSilence(error) || hasCode(error, "MethodNotAllowed", "MethodNotFound", "VersionNotSupported");
}

/**
 * Combines the candidates into one service. The first interface that answers stays in use. If an interface fails after it may have
 * processed a request, only requests that are safe to repeat go to the next interface. The error of the last interface lists
 * the errors of all interfaces. If a server rejects a request because the client withheld credentials, the error says so, and
 * `metadata.withheldFrom` is the origin. `card` is the name of the card in errors.
 */
export function firstAlive(
  candidates: readonly Candidate[],
  { headers }: ClientHost,
  logger: Logger | undefined,
  card: string,
): { service: AgentService; chosen(): AgentInterface } {
  let current = 0;
  /** Whether the current interface has answered and therefore stays in use. */
  let proven = false;
  /** The error of each interface. */
  const failures: string[] = [];
  /** Hosts that did not answer. An older version at such a host is not an alternative. */
  let silent: string[] = [];

  async function attempt<Request extends object, T>(
    operation: OperationName,
    request: Request,
    context: CallContext,
    run: (service: AgentService, request: Request, context: CallContext) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const mine = current;
      const { target, service, withheldFrom, place } = candidates[mine] as Candidate;
      try {
        const outgoing = { ...context.outgoing, ...(withheldFrom && { headers: noHeaders }) };
        const result = await run(service, tenanted(request, target), { ...context, outgoing });
        proven = true;
        return result;
      } catch (thrown) {
        const had = headers !== noHeaders || context.outgoing?.headers;
        if (withheldFrom && had && hasCode(thrown, "Unauthenticated", "PermissionDenied")) {
          proven = true;
          const why = `${thrown.message}. Credentials are not sent to ${withheldFrom}, only named by the card: see credentialOrigins`;
          throw reworded(thrown, why, { withheldFrom });
        }
        if (!(thrown instanceof A2AError) || proven || context.signal?.aborted) throw thrown;
        if (!isDead(thrown)) {
          proven = thrown.code !== "ConnectionLost";
          throw thrown;
        }
        const { protocolBinding, protocolVersion, url } = target;
        if (isSilence(thrown)) silent.push(place);
        const isOlder = (each: Candidate): boolean => each.target.protocolVersion !== protocolVersion;
        const next = candidates.findIndex((each, at) => at > mine && !(silent.includes(each.place) && isOlder(each)));
        const last = next < 0;
        failures[mine] = `${protocolBinding} ${protocolVersion} at ${url}: ${thrown.message}`;
        logger?.warn("An interface of the card failed", { url, cause: thrown });
        // If the last interface failed, all have failed, so the next request starts again with the first interface.
        if (current === mine) current = Math.max(next, 0);
        if (last) {
          silent = [];
          const tried = candidates.map(({ target }) => target.url).join(" ");
          throw reworded(thrown, `No interface of the card ${card} works:\n  ${failures.join("\n  ")}`, { tried });
        }
        if (!isIdempotent(operation, context) && !neverProcessed(thrown)) throw thrown;
      }
    }
  }

  return {
    chosen: () => (candidates[current] as Candidate).target,
    service: {
      call: (operation, request, context) =>
        attempt(operation, request, context, (service, mine, its) => service.call(operation, mine, its)),
      stream: (operation, request, context) =>
        attempt(operation, request, context, (service, mine, its) => service.stream(operation, mine, its)),
    },
  };
}
