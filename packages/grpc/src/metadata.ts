/** Headers that gRPC defines. A server reads these before it loads the codecs. */

import type { UniversalRequest } from "@parley/a2a/internal/protocol/index";

/** Maximum timer, in milliseconds. A longer timeout counts as no timeout. */
const longestTimer = 0x7fff_ffff;

const units: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** `grpc-timeout` in milliseconds, rounded up: 100 for `100m`; `undefined` if absent, NaN if invalid. */
export function parseTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, amount, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  const milliseconds = Math.ceil(Number(amount) * (units[unit] ?? Number.NaN));
  return milliseconds > longestTimer ? undefined : milliseconds;
}

/** Milliseconds as `grpc-timeout`, in the smallest unit with at most eight digits. */
export function formatTimeout(milliseconds: number): string {
  const whole = Math.max(0, Math.ceil(milliseconds));
  if (whole <= 99_999_999) return `${whole}m`;
  return `${Math.min(99_999_999, Math.ceil(whole / 1000))}S`;
}

/** Encodes the text of `grpc-message`: UTF-8, with `%XX` for `%` and all but printable ASCII. */
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

/** Decodes the text of `grpc-message`. As required, invalid escapes stay unchanged. */
export function decodeMessage(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = Uint8Array.from({ length: run.length / 3 }, (_, at) =>
      Number.parseInt(run.slice(at * 3 + 1, at * 3 + 3), 16),
    );
    return new TextDecoder().decode(bytes);
  });
}

export function isPreflight(request: UniversalRequest): boolean {
  return request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined;
}
