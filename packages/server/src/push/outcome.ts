import { A2AError } from "@parley/a2a/internal/model/index";
import type { DeliveryResult } from "@parley/a2a/internal/protocol/index";
import type { Health } from "./circuit.ts";
import type { Answer } from "./request.ts";

/* What an answer means to others than its config. */

/** The origin of an address. Its path may be a secret. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}

/** What an answer shows about its origin. */
export function healthOf(answer: Exclude<Answer, { readonly kind: "aborted" }>): Health {
  return answer.kind === "failed" ? answer.health : "alive";
}

/** An answer, for the observer. */
export function resultOf(answer: Answer): DeliveryResult {
  switch (answer.kind) {
    case "delivered":
      return { status: answer.status };
    case "gone":
      return { status: answer.status, error: new A2AError("InvalidResponse", "The receiver wants no more events") };
    case "aborted":
      return { error: new A2AError("Aborted", "The server is stopping") };
    case "refused":
      return { status: answer.status, error: new A2AError("InvalidResponse", answer.reason) };
    case "failed": {
      const { status, reason, error = new A2AError("InvalidResponse", reason) } = answer;
      return status === undefined ? { error } : { status, error };
    }
  }
}
