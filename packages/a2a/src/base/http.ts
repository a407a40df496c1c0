/* URLs, headers, and errors of connections. */

/** `localhost` and the names below it (RFC 6761 §6.3), 127.0.0.0/8 and ::1; also IPv4 in its IPv6 form, as sockets show it. */
const loopback = /^(?:(?:.+\.)?localhost|(?:::ffff:)?127(?:\.\d{1,3}){3}|::1|(?:0{1,4}:){7}0{0,3}1|\[::1\])$/i;

/** Whether a host, without a port, is this machine: a name or an IP address. IPv6 addresses may be in brackets. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** A path without its query, which may contain an API key. Logs contain only paths. */
export function withoutQuery(path: string): string {
  const mark = path.indexOf("?");
  return mark < 0 ? path : path.slice(0, mark);
}

/** A URL without the slashes at its end. Not a regular expression, because `/\/+$/` is quadratic in a long run of slashes. */
export function withoutSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}

/** The header `Retry-After` in seconds from `now`. It is a number or a date (RFC 9110 §10.2.3). */
export function retryAfterOf(value: string | null | undefined, now: number): number | undefined {
  if (!value) return undefined;
  const wait = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - now) / 1000;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

/** Error codes of Node and Bun for a connection that was never made. Browsers have none. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** Whether an error or one of its causes shows that no connection was made, so that nothing was sent. */
export function wasNeverSent(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && unsentCodes.test(String(cause.code))) return true;
    // Deno has no code for it, only a message.
    if (cause.message.includes("client error (Connect)")) return true;
  }
  return false;
}

/** Codes of Node for permanent errors: certificates, a port without TLS, malformed addresses and headers. */
const permanentCodes = /CERT|VERIFY_LEAF|WRONG_VERSION|INVALID/;

/** Whether an error or one of its causes is permanent, so that a later attempt to connect would fail, too. */
export function cannotConnect(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // `fetch` rejects ports of some old services, without a code.
    if (("code" in cause && permanentCodes.test(String(cause.code))) || cause.message === "bad port") return true;
  }
  return false;
}
