import { A2AError } from "../model/index.ts";

/** What readers of a run are told that was given up. The server logs it once, with the number of runs. */
export class RunGivenUp extends A2AError {
  constructor(cause: unknown, retryAfter: number) {
    super("Unavailable", undefined, { cause, retryAfter });
  }
}

/** What a server tells its callers and readers while it stops. It is no failure, and comes once for each of them. */
export class ServerIsStopping extends A2AError {
  constructor(message: string, retryAfter?: number) {
    super("Unavailable", message, { retryAfter });
  }
}
