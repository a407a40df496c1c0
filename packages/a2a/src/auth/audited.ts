import type { Clock } from "../base/index.ts";
import { toA2AError, type A2AErrorCode } from "../model/index.ts";
import {
  auditedSubject,
  hasWrongCredentials,
  resourceOf,
  type AgentService,
  type Audit,
  type AuditRecord,
  type CallContext,
  type OperationName,
  type Principal,
  type UniversalRequest,
} from "../protocol/index.ts";

type Authenticate = (request: UniversalRequest) => Principal | Promise<Principal>;

/** Authenticates callers within rate limits, and audits rejections. `within`: may reject a caller after authentication. */
export function auditedAuthentication(
  authenticate: Authenticate,
  within: (authenticate: Authenticate) => Authenticate,
  audit: Audit,
  clock: Clock,
): Authenticate {
  const known = new WeakMap<UniversalRequest, Principal>();
  const limited = within(async (request) => {
    const principal = await authenticate(request);
    known.set(request, principal);
    return principal;
  });
  const record = (request: UniversalRequest, code: A2AErrorCode): void => {
    const trace = request.header("traceparent");
    const subject = auditedSubject({ principal: known.get(request), address: request.facts?.remoteAddress, trace });
    const event = events[code] ?? "authentication";
    audit({ event, outcome: outcomeOf(code), time: clock.now(), code, ...subject });
  };
  return async (request) => {
    try {
      const principal = await limited(request);
      // An authenticated caller may be guessing the credentials of another caller.
      if (hasWrongCredentials(request)) record(request, "Unauthenticated");
      return principal;
    } catch (thrown) {
      record(request, toA2AError(thrown).code);
      throw thrown;
    }
  };
}

/** A service that records calls rejected because of their caller. `agent`: the id of the agent behind it. */
export function auditedService(service: AgentService, agent: string, audit: Audit, clock: Clock): AgentService {
  function record(operation: OperationName, request: unknown, context: CallContext, thrown: unknown): void {
    const { code } = toA2AError(thrown);
    const event = events[code];
    if (event !== undefined) audit({ event, ...refusedCall(agent, operation, request, context, clock), code });
  }
  return {
    async call(operation, request, context) {
      try {
        return await service.call(operation, request, context);
      } catch (thrown) {
        record(operation, request, context, thrown);
        throw thrown;
      }
    },
    async stream(operation, request, context) {
      try {
        return await service.stream(operation, request, context);
      } catch (thrown) {
        record(operation, request, context, thrown);
        throw thrown;
      }
    },
  };
}

const events: { readonly [Code in A2AErrorCode]?: AuditRecord["event"] } = {
  Unauthenticated: "authentication",
  PermissionDenied: "authorization",
  TooManyRequests: "limit",
};

/** An unexpected error of an authenticator counts as a failure, not as a rejection. */
function outcomeOf(code: A2AErrorCode): AuditRecord["outcome"] {
  return events[code] === undefined ? "failed" : "refused";
}

/** The record of a rejected call. */
export function refusedCall(
  agent: string,
  operation: OperationName,
  request: unknown,
  context: CallContext,
  clock: Clock,
): Omit<AuditRecord, "event"> {
  const { principal, address, trace } = context;
  const { taskId, contextId } = resourceOf(operation, request);
  const subject = auditedSubject({ principal, address, taskId, contextId, trace });
  return { outcome: "refused", time: clock.now(), agent, operation, ...subject };
}
