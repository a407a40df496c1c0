/** The header `Retry-After` in seconds from `now`. It is a number or a date (RFC 9110 §10.2.3). */
export function retryAfterOf(value: string | null | undefined, now: number): number | undefined {
  if (!value) return undefined;
  const wait = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - now) / 1000;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}
