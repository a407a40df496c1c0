import { A2AError, wireErrors, type A2AErrorCode } from "@parley/a2a/model";
import { codecV1 } from "@parley/a2a/protocol";

/** The wire form of an error. */
export interface ErrorRow {
  readonly error: A2AErrorCode;
  /** `status` of the frame. */
  readonly status: number;
  /** `error.status` in the `error` of the frame. */
  readonly name: string;
  /** `reason` of its `google.rpc.ErrorInfo`. */
  readonly reason: string;
}

interface Body {
  readonly error: { readonly status: string; readonly details: readonly { readonly reason?: string }[] };
}

/** The wire form of every error: a custom binding must define it (A2A 1.0 §12.4). */
export function errorTable(): readonly ErrorRow[] {
  return (Object.keys(wireErrors) as (keyof typeof wireErrors)[]).map((error) => {
    const body = JSON.parse(codecV1.shapes.encodeError(new A2AError(error))) as Body;
    const reason = body.error.details.find((detail) => detail.reason !== undefined)?.reason ?? "";
    return { error, status: wireErrors[error].http, name: body.error.status, reason };
  });
}

/** The table as Markdown, as it is in README.md. */
export function printedTable(): string {
  const rows = errorTable().map(({ error, status, name, reason }) => [
    `\`${error}\``,
    `${status}`,
    name,
    reason || "–",
  ]);
  const all = [["error", "`status`", "`error.error.status`", "`reason`"], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  return lines.join("\n");
}
