import type { UniversalRequest } from "./http.ts";

/**
 * Whether a browser says that a request comes from a page of another origin: in `Sec-Fetch-Site` (Fetch Metadata) or in `Origin`
 * (RFC 6454 §7). Either is enough. A program sends neither.
 *
 * @param url - An address of this server, as clients reach it.
 */
export function isOfOtherPage(request: UniversalRequest, url: string): boolean {
  const site = request.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const origin = request.header("origin");
  if (origin === undefined) return false;
  const own = /^https?:\/\/[^/?#]*/.exec(url)?.[0];
  return origin !== own && origin.replace(/^https?:\/\//, "") !== request.header("host");
}
