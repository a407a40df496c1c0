/** Makes identifiers of tasks, contexts and messages. They must not be guessable. */
export interface Ids {
  /** A new identifier. */
  next(): string;
}

/** Random UUIDs (version 4). */
export const randomIds: Ids = { next: () => crypto.randomUUID() };

/** UUIDs of version 7 (RFC 9562 §5.7), which sort by time: SQLite writes a sixth less for a task than with version 4. */
export function timeOrderedIds(): Ids {
  let time = 0;
  let prefix = "";
  const tails = randomTails();
  return {
    next() {
      const now = Date.now();
      if (now !== time) {
        time = now;
        const hex = now.toString(16).padStart(12, "0");
        prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      }
      return prefix + tails();
    },
  };
}

/**
 * Makes the part after the version, 128 at a time, as one text that is then sliced. `crypto.randomUUID()` and the package `uuid` allocate
 * ten times as much and break the budget "bytes of message" in test/budgets.
 */
function randomTails(): () => string {
  const count = 128;
  const pattern = "xxx-yxxx-xxxxxxxxxxxx";
  const length = pattern.length;
  const digits = new TextEncoder().encode("0123456789abcdef");
  const decoder = new TextDecoder();
  const bytes = new Uint8Array(count * length);
  let tails = "";
  let used = 0;
  const refill = (): void => {
    crypto.getRandomValues(bytes);
    for (let at = 0; at < bytes.length; at++) {
      const kind = pattern[at % length];
      const random = (bytes[at] ?? 0) & 15;
      // The variant's two upper bits are 10 (RFC 9562 §4.1).
      bytes[at] = kind === "-" ? 0x2d : (digits[kind === "y" ? 8 | (random & 3) : random] ?? 0);
    }
    tails = decoder.decode(bytes);
    used = 0;
  };
  return () => {
    if (used === tails.length) refill();
    const tail = tails.slice(used, used + length);
    used += length;
    return tail;
  };
}
