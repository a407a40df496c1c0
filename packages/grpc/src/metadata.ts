/** What headers and trailers of gRPC say, beyond HTTP. */

/** Longest deadline that a timer can hold, in milliseconds; a later one is none. */
const longestTimer = 0x7fff_ffff;

const units: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** `grpc-timeout` in milliseconds, rounded up: `100m` is a tenth of a second. `undefined` for none, NaN for what is none. */
export function parseTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,8})([HMSmun])$/.exec(text);
  if (match === null) return Number.NaN;
  const milliseconds = Math.ceil(Number(match[1]) * (units[match[2] as string] as number));
  return milliseconds > longestTimer ? undefined : milliseconds;
}

/** Milliseconds as `grpc-timeout`, in the smallest unit whose number has eight digits at most. */
export function formatTimeout(milliseconds: number): string {
  const whole = Math.max(0, Math.ceil(milliseconds));
  if (whole <= 99_999_999) return `${whole}m`;
  return `${Math.min(99_999_999, Math.ceil(whole / 1000))}S`;
}

/** Text as `grpc-message` carries it: UTF-8, with everything but printable ASCII and `%` itself as `%XX`. */
export function encodeMessage(text: string): string {
  if (/^[ -$&-~]*$/.test(text)) return text;
  let encoded = "";
  for (const byte of new TextEncoder().encode(text)) {
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/** And back; what is no escape stays as it is, as the protocol asks of readers. */
export function decodeMessage(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = Uint8Array.from({ length: run.length / 3 }, (_, at) =>
      Number.parseInt(run.slice(at * 3 + 1, at * 3 + 3), 16),
    );
    return new TextDecoder().decode(bytes);
  });
}
