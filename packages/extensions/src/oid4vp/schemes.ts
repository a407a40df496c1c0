import { isLoopback } from "@parley/a2a/internal/base/index";

/* Which links may invoke a wallet. A stranger wrote them, so what is not known to lead to a wallet does not pass. */

/**
 * Schemes that wallets have: of OID4VP 1.0 §13.1.2, of its profile HAIP 1.0, and of ISO/IEC 18013-7 Annex B. Those of apps are named by
 * who knows them.
 */
const usualWalletSchemes: readonly string[] = ["openid4vp", "haip-vp", "mdoc-openid4vp"];

/** Which wallets may be invoked besides the usual ones. */
export interface WalletSchemesOptions {
  /**
   * Schemes of wallets that this application knows, such as `com.example.wallet`, without the colon. Links may also have `openid4vp`, `haip-vp`
   * and `mdoc-openid4vp`, and be `https:`, or `http:` on this machine. Default: no others.
   */
  readonly walletSchemes?: readonly string[];
}

/** These run something, read something, or lead to a web server: no wallet is invoked by them, whatever an option says. */
const neverSchemes =
  /^(?:javascript|vbscript|data|file|blob|filesystem|about|view-source|jar|https?|wss?|s?ftps?|intent|mailto|tel|sms)$/;

/** A name of a scheme in small letters (RFC 3986 §3.1). */
const schemeName = /^[a-z][a-z0-9+.-]{0,99}$/;

/** A URI has these characters and no others (RFC 3986 §2): programs drop spaces and turn backslashes each in their own way. */
const uriText = /^[a-z][a-z0-9+.-]*:[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/i;

/** Whether a URI is one of a web server, with a host: `https:path` is relative in a page. */
export function isWeb(text: string): boolean {
  return /^https?:\/\/[^/?#]/i.test(text);
}

/** The schemes that links to wallets may have. */
export class WalletSchemes {
  readonly #names: ReadonlySet<string>;

  /** @throws TypeError for a scheme that can be none of a wallet. */
  constructor({ walletSchemes = [] }: WalletSchemesOptions = {}) {
    for (const name of walletSchemes) {
      if (typeof name === "string" && schemeName.test(name) && !neverSchemes.test(name)) continue;
      throw new TypeError(`walletSchemes must be names of schemes such as com.example.wallet, and not ${String(name)}`);
    }
    this.#names = new Set([...usualWalletSchemes, ...walletSchemes]);
  }

  /** Whether a URI may be given to a wallet: of a web server with TLS, of this machine, or with a scheme of wallets. */
  opens(text: string): boolean {
    if (!this.invokes(text)) return false;
    if (isWeb(text)) return true;
    // It is passed on as it is. What is after `#` would be read by some wallets alone.
    if (text.includes("#")) return false;
    // What a wallet is invoked with may name a place as well.
    return new URL(text).searchParams.getAll("request_uri").every((at) => isWeb(at) && this.opens(at));
  }

  /** Whether a URI may be the endpoint of a wallet. */
  invokes(text: string): boolean {
    if (!uriText.test(text) || !URL.canParse(text)) return false;
    const { protocol, hostname, username, password } = new URL(text);
    if (username + password !== "") return false;
    if (protocol === "https:") return isWeb(text);
    if (protocol === "http:") return isWeb(text) && isLoopback(hostname);
    return this.#names.has(protocol.slice(0, -1));
  }
}
