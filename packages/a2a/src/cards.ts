/**
 * Cards that can be trusted: signing them, verifying them, and finding what is wrong with them (A2A 1.0 §8.4).
 * @packageDocumentation
 */

export {
  canonicalJson,
  cardKeySet,
  lintCard,
  makeCardKey,
  signCard,
  trustCards,
  verifyCard,
  type CardAlgorithm,
  type CardCheck,
  type CardFinding,
  type CardKeySet,
  type CardReading,
  type CardTrust,
  type CardVerdict,
  type PrivateCardKey,
  type PublicCardKey,
  type SignatureVerdict,
  type SignCardOptions,
  type TrustedKeys,
  type VerifyCardOptions,
} from "./cards/index.ts";
