import { isMainThread } from "node:worker_threads";

// This module is loaded before anything else. It provides a wall clock that can jump, as if an administrator or NTP had set the clock.

let offset = 0;
const SystemDate = Date;

class MovedDate extends SystemDate {
  /** @param {unknown[]} input */
  constructor(...input) {
    super(.../** @type {[number]} */ (input.length === 0 ? [MovedDate.now()] : input));
  }

  /** @override */
  static now() {
    return SystemDate.now() + offset;
  }
}

// The writer thread uses no wall clock.
if (isMainThread) {
  globalThis.Date = /** @type {DateConstructor} */ (MovedDate);
  process.on("message", (/** @type {{ readonly jump?: number }} */ { jump = 0 }) => {
    offset += jump;
  });
}
