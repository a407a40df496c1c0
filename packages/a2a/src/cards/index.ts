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
export { cardKeySet, makeCardKey } from "./keys.ts";
export { lintCard } from "./lint.ts";
export { signCard } from "./sign.ts";
export { verifyCard, type VerifyCardOptions } from "./verify.ts";
export { trustCards } from "./trust.ts";
