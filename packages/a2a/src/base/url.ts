/** `localhost` and the names below it (RFC 6761 §6.3), 127.0.0.0/8 and ::1; also IPv4 in its IPv6 form, as sockets show it. */
const loopback = /^(?:(?:.+\.)?localhost|(?:::ffff:)?127(?:\.\d{1,3}){3}|::1|(?:0{1,4}:){7}0{0,3}1|\[::1\])$/i;

/**
 * Whether a host is this machine and nothing else: a name or an IP address, without a port. IPv6 addresses may stand in
 * brackets, as in a URL.
 */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** A path without its query, which may have an API key: logs have paths only. */
export function withoutQuery(path: string): string {
  const mark = path.indexOf("?");
  return mark < 0 ? path : path.slice(0, mark);
}

/** A URL without the slashes at its end. No pattern, because `/\/+$/` is quadratic in a long run of slashes. */
export function withoutSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}
