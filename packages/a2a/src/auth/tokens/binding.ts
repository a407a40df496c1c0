import { toBase64Url } from "../../base/bytes.ts";
import type { Clock } from "../../base/index.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { AuthenticationPlace } from "../port.ts";
import { proofCheck, type DpopOptions } from "./dpop.ts";
import { WrongToken, type Confirmation, type PresentedToken } from "./token.ts";

/* Tokens that are bound to a key of their caller: with DPoP (RFC 9449) or with a certificate (RFC 8705). */

/** Checks that a caller has the key that its token is bound to. Throws a `WrongToken` where it has not. */
export type CheckBinding = (
  presented: PresentedToken,
  confirmation: Confirmation | undefined,
  request: UniversalRequest,
  place: AuthenticationPlace,
) => Promise<void> | void;

/** What is demanded of tokens. */
interface BindingRules {
  readonly bound: "dpop" | "certificate" | undefined;
  readonly dpop: DpopOptions | undefined;
  readonly clock: Clock;
}

/** Makes the check of bindings. */
export function bindingCheck({ bound, dpop, clock }: BindingRules): CheckBinding {
  const checkProof = proofCheck(dpop ?? {}, clock);
  return (presented, confirmation, request, place) => {
    const { jkt, x5t } = confirmation ?? {};
    if (bound === "dpop" && jkt === undefined) throw new WrongToken("The token is not bound to a key (DPoP)");
    if (bound === "certificate" && x5t === undefined) throw new WrongToken("The token is not bound to a certificate");
    if (x5t !== undefined) checkCertificate(x5t, request);
    // A bound token must not be taken as a bearer token, nor the reverse (RFC 9449 §7.1, §7.2).
    if ((jkt !== undefined) !== (presented.scheme === "dpop")) {
      throw new WrongToken(jkt === undefined ? "The token is a bearer token" : "The token needs a proof (DPoP)");
    }
    return jkt === undefined ? undefined : checkProof(jkt, presented.token, request, place);
  };
}

/**
 * The certificate of the connection has to be that of the token (RFC 8705 §3). It need not be by a known authority: the authorization
 * server has recognized it, and the handshake has proved its key.
 */
function checkCertificate(thumbprint: string, { facts }: UniversalRequest): void {
  const fingerprint = facts?.certificate?.fingerprint;
  if (fingerprint === undefined)
    throw new WrongToken("The token is bound to a certificate, and the connection has none");
  if (toBase64Url(bytesOf(fingerprint)) !== thumbprint)
    throw new WrongToken("The token is bound to another certificate");
}

function bytesOf(hexadecimal: string): Uint8Array {
  return Uint8Array.from(hexadecimal.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
