/**
 * Signs, verifies and checks agent cards (A2A 1.0 §8.4).
 * @packageDocumentation
 */

export type {
  CardAlgorithm,
  CardCheck,
  CardFinding,
  CardKeySet,
  CardReading,
  CardTrust,
  CardVerdict,
  PrivateCardKey,
  PublicCardKey,
  SignatureVerdict,
  SignCardOptions,
  TrustedKeys,
} from "./port.ts";
export { canonicalJson } from "../jws/jcs.ts";
export { cardKeySet, makeCardKey, signCard } from "./sign.ts";
export { lintCard } from "./lint.ts";
export { verifyCard, type VerifyCardOptions, trustCards } from "./verify.ts";
