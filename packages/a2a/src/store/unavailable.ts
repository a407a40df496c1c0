import { A2AError } from "../model/index.ts";

/** The error of a store that cannot do its work now. The message may reach a client, the cause is only logged. */
export function unavailable(sentence: string, cause?: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause });
}
