import { isMainThread } from "node:worker_threads";

// Loaded before anything else: a wall clock that can be set to another time, as an administrator or NTP does it.

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

// The thread that writes has no wall clock in what it does.
if (isMainThread) {
  globalThis.Date = /** @type {DateConstructor} */ (MovedDate);
  process.on("message", (/** @type {{ readonly jump?: number }} */ { jump = 0 }) => {
    offset += jump;
  });
}
