import type { StatusName } from "../status.ts";

/** What goes wrong in the terms of gRPC alone, for which the protocol above it has no word. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: StatusName;
  /** Trailers beside the status. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(status: StatusName, message: string, metadata: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.metadata = metadata;
  }
}
