import type { ServerDate } from "./card.ts";
import type { Finding } from "./finding.ts";

/** From how many milliseconds on a difference is worth a warning. Tokens and signatures are usually allowed a minute. */
const tolerated = 5_000;
const refused = 60_000;

/** How far the clock of the server differs from that of this machine, from the `Date` of an answer (RFC 9110 §6.6.1). */
export function checkClock({ said, asked, answered }: ServerDate): Finding {
  // The header has whole seconds, and was written somewhere between the request and the answer.
  const early = asked - (said + 1000);
  const late = said - answered;
  const off = Math.max(early, late, 0);
  if (off < tolerated)
    return { subject: "clock", verdict: "ok", seen: "the clocks of the server and of this machine agree" };
  const seen = `the clock of the server is ${duration(off)} ${early > late ? "behind" : "ahead of"} that of this machine`;
  const cure =
    "Set both by NTP, such as with timedatectl set-ntp true. Tokens, signatures and times of tasks are wrong otherwise";
  return { subject: "clock", verdict: off < refused ? "warning" : "broken", seen, cure };
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
