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
