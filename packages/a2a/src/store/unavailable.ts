import { A2AError } from "../model/index.ts";

/** The error of a store that cannot do its work now. The sentence may reach a client, the cause stays in the log (D12). */
export function unavailable(sentence: string, cause?: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause });
}
