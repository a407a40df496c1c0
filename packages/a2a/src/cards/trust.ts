import type { Clock } from "../base/index.ts";
import { A2AError, invalidParams } from "../model/index.ts";
import type { CardCheck, CardTrust, CardVerdict } from "./port.ts";
import { cardVerifier } from "./verify.ts";

/**
 * Makes the option `trust` of `connect()`. It may be shared by many clients: it keeps the key sets that it has read.
 *
 * @throws A2AError `InvalidParams` where `trust` is not valid.
 *
 * @example
 * ```ts
 * const keySet = "https://agents.example.com/.well-known/card-keys.json";
 * const trust = trustCards({ policy: "require", keys: [{ keySet, origins: ["https://agents.example.com"] }] });
 * const client = await connect("https://agents.example.com/weather", { trust });
 * ```
 */
export function trustCards(trust: CardTrust, clock?: Clock): CardCheck {
  const { policy = "require" } = trust;
  if (!["require", "prefer", "ignore"].includes(policy)) {
    throw invalidParams([{ field: "trust.policy", description: 'must be "require", "prefer" or "ignore"' }]);
  }
  const verify = cardVerifier(trust, clock);
  const check: CardCheck["check"] = async (documents, address, logger) => {
    const [first] = documents;
    if (policy === "ignore") return first;
    const verdicts: CardVerdict[] = [];
    for (const document of documents) {
      const verdict = await verify(document, address);
      if (verdict.card !== undefined) return verdict.card;
      verdicts.push(verdict);
    }
    const { name } = first as { readonly name?: unknown };
    const problem = `The card of ${JSON.stringify(name)} is not signed by a trusted key: ${reasonsOf(verdicts)}`;
    const forged = verdicts.every(isForged);
    if (forged) throw new A2AError("InvalidResponse", problem);
    // With its keys it may be trusted a moment later.
    const unread = verdicts.some(({ signatures }) => signatures.some(({ outcome }) => outcome === "unreadable-keys"));
    if (policy === "require") throw new A2AError(unread ? "Unavailable" : "InvalidResponse", problem);
    logger.warn(problem);
    return first;
  };
  return { check };
}

/** Whether a trusted key is named, and has not signed this. */
function isForged({ signatures }: CardVerdict): boolean {
  return signatures.some(({ outcome }) => outcome === "invalid");
}

/** What is wrong with the signatures, each reason once. */
function reasonsOf(verdicts: readonly CardVerdict[]): string {
  const signatures = verdicts.flatMap((verdict) => verdict.signatures);
  if (signatures.length === 0) return "it has no signature";
  const all = signatures.map(({ kid, reason = "" }) =>
    kid === undefined ? reason : `${JSON.stringify(kid)}: ${reason}`,
  );
  return [...new Set(all)].join("; ").slice(0, 1_000);
}
