import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError, hasCode } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  auditedSubject,
  Payload,
  type AgentService,
  type Audit,
  type Principal,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import type { CardGate } from "@parley/a2a/internal/transport/discovery/handler";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { Authentication } from "./authentication.ts";
import type { HandlerOptions } from "./options.ts";
import type { MountedAgent } from "./serve-agent.ts";

/* The option `cardReaders` of a handler: who may read the public cards, and the pages that show them. */

/** A caller who asks for the public card of an agent. */
export interface CardReader {
  /** The caller that the authenticator returned. `anonymous` where `anyone()` is among the authenticators, and nobody is known. */
  readonly principal: Principal;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
}

/**
 * Who may read the public cards.
 * - `anyone`: all who reach the server.
 * - `authenticated`: callers whom the authenticator accepts for the agent. Others get 401.
 * - a function: of these callers, those for whom it returns true. Others get 403, and strangers 401.
 */
export type CardReaders = "anyone" | "authenticated" | ((reader: CardReader) => boolean | Promise<boolean>);

/**
 * Checks the readers of the card of an agent; `undefined` where anyone may read it.
 *
 * @throws A2AError `InvalidParams` for an option that is not valid, or without an authenticator.
 */
export function cardGates(
  { authenticator, cardReaders = "anyone" }: Pick<HandlerOptions, "authenticator" | "cardReaders">,
  authentication: Pick<Authentication, "guard">,
  authenticate: (request: UniversalRequest) => Principal | Promise<Principal>,
  { audit, clock }: { readonly audit: Audit | undefined; readonly clock: Clock },
): ((agent: MountedAgent) => CardGate) | undefined {
  if (cardReaders === "anyone") return undefined;
  if (cardReaders !== "authenticated" && typeof cardReaders !== "function") {
    throw cannotServe("cardReaders", 'must be "anyone", "authenticated" or a function');
  }
  if (authenticator === undefined) {
    throw cannotServe("cardReaders", "needs an authenticator, which finds the reader. Set `authenticator`");
  }
  const keys = Object.values(authenticator.securitySchemes).flatMap(({ apiKeySecurityScheme: key }) =>
    key?.location === "header" ? [key.name] : [],
  );
  const vary = [...new Set(["Authorization", "Cookie", ...keys])];
  // A page may show many cards. Its reader authenticates once.
  const readers = new WeakMap<UniversalRequest, Promise<Principal>>();
  const readerOf = (request: UniversalRequest): Promise<Principal> => {
    const found = readers.get(request) ?? (async () => authenticate(request))();
    readers.set(request, found);
    return found;
  };
  return (agent) => {
    const guarded = authentication.guard(accepting, agent);
    const allow = async (principal: Principal): Promise<void> => {
      const context = { principal, version: "", extensions: [] };
      const known = () => guarded.call("GetExtendedAgentCard", {}, context);
      if (cardReaders === "authenticated") return void (await known());
      await guarded.call("ListTasks", {}, context);
      if ((await cardReaders({ principal, agent: agent.id })) === true) return;
      if (principal === anonymous) await known();
      throw new A2AError("PermissionDenied", "This caller may not read the card");
    };
    return {
      vary,
      async check(request, isListed = false) {
        const principal = await readerOf(request);
        try {
          await allow(principal);
        } catch (thrown) {
          if (!isListed && hasCode(thrown, "Unauthenticated", "PermissionDenied")) {
            const subject = auditedSubject({ principal, address: request.facts?.remoteAddress });
            const event = thrown.code === "Unauthenticated" ? "authentication" : "authorization";
            const about = { agent: agent.id, action: "card.read", code: thrown.code };
            audit?.({ event, outcome: "refused", time: clock.now(), ...subject, ...about });
          }
          throw thrown;
        }
      },
    };
  };
}

/** What is behind the checks of the callers of an agent: everybody who comes so far is accepted. */
const accepting: AgentService = {
  call: async () => ({ payload: new Payload({} as never) }),
  stream: () => Promise.reject(new A2AError("UnsupportedOperation")),
};
