import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError, hasCode, type AgentCard, type AgentCardSignature } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import {
  anonymous,
  auditedSubject,
  Payload,
  type AgentService,
  type Audit,
  type Principal,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import type { CardGate, PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import type { Authentication } from "./authentication.ts";
import type { MountedAgent } from "./mounted.ts";
import type { HostOptions, SignCards } from "./options.ts";

/* The option `signCards` of a handler. The signing code is loaded with the first card. */

/** Path of the public keys, below the path of the public URL. */
const cardKeysPath = "/.well-known/card-keys.json";

/** Signs the cards of a server. */
export interface CardSigner {
  /** The card with signatures for each of its versions. */
  sign(card: AgentCard): Promise<AgentCard>;
  readonly document: PublicDocument;
}

/** Maximum cached signatures, and bytes of their cards. Extended cards differ between callers. */
const remembered = { entries: 1_000, bytes: 8 << 20 };

/**
 * The signer of a server; `undefined` if it signs nothing.
 *
 * @param host - The public URL, the prefix of each path, and the versions of cards.
 */
export function cardSignerOf(
  option: SignCards | undefined,
  host: { readonly publicUrl: string; readonly basePath: string; readonly codecs: readonly Codec[] },
): CardSigner | undefined {
  if (option === undefined) return undefined;
  checkKeys(option);
  const jku = host.publicUrl + cardKeysPath;
  const sign = async (card: AgentCard): Promise<readonly AgentCardSignature[]> => {
    const { signCard } = await import("@parley/a2a/internal/cards/index");
    const { keys, reduced = true } = option;
    const written = host.codecs.map((codec) => codec.encodeCard(card));
    const signed = await Promise.all(written.map((form) => signCard(form, keys, { jku, reduced }))).catch(
      (cause: unknown) => {
        // An internal error, because the caller is not the cause.
        throw new Error("The card cannot be signed: see signCards", { cause });
      },
    );
    return signed.flatMap(({ signatures }) => signatures);
  };
  const known = new BoundedMap<readonly AgentCardSignature[]>({ ...remembered, bytesOf: (text) => memoryOf(text) });
  return {
    async sign(card) {
      const { signatures: _, ...unsigned } = card;
      const text = JSON.stringify(unsigned);
      const signatures = known.get(text) ?? (await sign(unsigned));
      known.set(text, signatures);
      return { ...unsigned, signatures };
    },
    document: {
      path: host.basePath + cardKeysPath,
      name: "A key set",
      mediaType: "application/jwk-set+json",
      async load() {
        const { cardKeySet } = await import("@parley/a2a/internal/cards/index");
        const { keys } = await cardKeySet(option.keys);
        return { keys: [...keys, ...(option.retired ?? [])] };
      },
    },
  };
}

/** Types of keys that can sign cards. */
const types: readonly unknown[] = ["EC", "OKP", "RSA"];

/** Rejects anything but private keys at startup, without revealing them. Signing the first card finds other problems. */
function checkKeys({ keys, retired = [] }: SignCards): void {
  if (!areKeys(keys, true) || keys.length === 0) {
    const made = "Create one with makeCardKey() of @parley/a2a/cards";
    throw cannotServe("signCards.keys", `must be a list of private keys as JWKs. ${made}`);
  }
  if (!areKeys(retired, false)) {
    throw cannotServe("signCards.retired", "must be a list of public keys as JWKs, without their secret part");
  }
}

/** JavaScript callers can pass anything. */
function areKeys(list: unknown, arePrivate: boolean): list is readonly object[] {
  const isKey = (key: unknown): boolean =>
    isObject(key) && types.includes(key["kty"]) && (typeof key["d"] === "string") === arePrivate;
  return Array.isArray(list) && list.every(isKey);
}

/* The option `cardReaders` of a handler: who may read the public cards, and the pages that show them. */

/**
 * Checks the readers of the card of an agent; `undefined` if anyone may read it.
 *
 * @throws A2AError `InvalidParams` for an option that is not valid, or without an authenticator.
 */
export function cardGates(
  { authenticator, cardReaders = "anyone" }: Pick<HostOptions, "authenticator" | "cardReaders">,
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
  // A page may show many cards, so authenticate its reader only once.
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

/** The service for checks that concern only the caller: it accepts every call. */
export const accepting: AgentService = {
  call: async () => ({ payload: new Payload({} as never) }),
  stream: () => Promise.reject(new A2AError("UnsupportedOperation")),
};
