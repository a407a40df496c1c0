/** A URL without the slashes at its end. No pattern: `/\/+$/` is quadratic in a long run of slashes. */
export function withoutSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}
