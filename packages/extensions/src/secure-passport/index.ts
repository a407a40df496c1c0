/**
 * Secure Passport: a caller says who it is and what it knows, with a signature.
 * @packageDocumentation
 */

export {
  callerContextSchema,
  passportBytes,
  passportOf,
  securePassportUri,
  withPassport,
  type CallerContext,
  type PassportParams,
} from "./context.ts";
export { securePassport, type CallerOptions, type Passport, type SecurePassportOptions } from "./extension.ts";
export {
  memoryNonces,
  type MemoryNoncesOptions,
  type PassportNonces,
  type PassportUse,
  type UsedPassport,
  passportKeys,
  type PassportKey,
  type PassportKeySet,
  type PassportKeysOptions,
  type PassportTrust,
} from "./trust.ts";
export {
  makePassportKey,
  passportKeySet,
  signPassport,
  verifyPassport,
  type PassportAlgorithm,
  type PassportProblem,
  type PassportVerdict,
  type PrivatePassportKey,
  type SignPassportOptions,
  type VerifyPassportOptions,
} from "./signature.ts";
