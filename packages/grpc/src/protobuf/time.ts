/** Timestamps and durations between ProtoJSON text and the seconds and nanoseconds of protobuf. */

interface Time {
  readonly seconds: number;
  readonly nanos: number;
}

const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** RFC 3339 in UTC, with milliseconds always (A2A 1.0 §5.6.1) and more only where there is more; undefined outside of the years 1 to 9999. */
export function timestampText(seconds: bigint, nanos: number): string | undefined {
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) return undefined;
  const whole = new Date(Number(seconds) * 1000 + Math.floor(nanos / 1e6)).toISOString();
  const below = nanos % 1_000_000;
  if (below === 0) return whole;
  const digits = String(below).padStart(6, "0");
  return `${whole.slice(0, -1)}${digits.endsWith("000") ? digits.slice(0, 3) : digits}Z`;
}

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(?:Z|[+-]\d\d:\d\d)$/i;

export function parseTimestamp(text: string): Time {
  const match = timestamp.exec(text);
  const milliseconds = match === null ? Number.NaN : Date.parse(text);
  if (match === null || Number.isNaN(milliseconds)) throw new TypeError(`${JSON.stringify(text)} is no timestamp`);
  return { seconds: Math.floor(milliseconds / 1000), nanos: Number((match[1] ?? "").padEnd(9, "0")) };
}

export function durationText(seconds: bigint, nanos: number): string | undefined {
  if (seconds < -315_576_000_000n || seconds > 315_576_000_000n || Math.abs(nanos) > 999_999_999) return undefined;
  const sign = seconds < 0n || nanos < 0 ? "-" : "";
  const whole = seconds < 0n ? -seconds : seconds;
  const fraction =
    nanos === 0
      ? ""
      : `.${String(Math.abs(nanos))
          .padStart(9, "0")
          .replace(/(?:000){1,2}$/, "")}`;
  return `${sign}${whole}${fraction}s`;
}

const duration = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

export function parseDuration(text: string): Time {
  const match = duration.exec(text);
  if (match === null) throw new TypeError(`${JSON.stringify(text)} is no duration`);
  const [, sign, whole, fraction = ""] = match;
  const factor = sign === "-" ? -1 : 1;
  return { seconds: factor * Number(whole), nanos: factor * Number(fraction.padEnd(9, "0")) };
}
