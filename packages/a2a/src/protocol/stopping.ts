import { A2AError } from "../model/index.ts";

/** What a server tells its callers and readers while it stops. It is no failure, and comes once for each of them. */
export class ServerIsStopping extends A2AError {
  constructor(message: string, retryAfter?: number) {
    super("Unavailable", message, { retryAfter });
  }
}
