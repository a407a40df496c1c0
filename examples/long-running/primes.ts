/** Counts the primes from `from` up to but not including `to`, by the sieve of Eratosthenes on this range. */
export function countPrimes(from: number, to: number): number {
  const isComposite = new Uint8Array(to - from);
  for (const prime of primesUpTo(Math.floor(Math.sqrt(to)))) {
    const first = Math.max(prime * prime, Math.ceil(from / prime) * prime);
    for (let n = first; n < to; n += prime) isComposite[n - from] = 1;
  }
  return isComposite.reduce((count, composite) => count + 1 - composite, 0);
}

function primesUpTo(limit: number): readonly number[] {
  const isComposite = new Uint8Array(limit + 1);
  const primes: number[] = [];
  for (let n = 2; n <= limit; n += 1) {
    if (isComposite[n] === 1) continue;
    primes.push(n);
    for (let multiple = n * n; multiple <= limit; multiple += n) isComposite[multiple] = 1;
  }
  return primes;
}
