import { invalidParams, type A2AError } from "@parley/a2a/internal/model/index";
import type { AcceptedCall, AcceptedInput } from "@parley/a2a/internal/protocol/index";
import { paymentOfMandate } from "./embedded.ts";
import { clientStatuses, mayMovePayment } from "./states.ts";
import { chargeRow, paymentsOf, type StoredCharge } from "./stored.ts";
import { x402Keys, x402UriV01, x402UriV02, type PaymentStatus } from "./types.ts";

/**
 * A message about a payment comes in. It has to belong to a task that asks for one; the charge is then submitted, with this message, in the
 * same transaction. So a second payment for the same offer is refused before it is stored. The metadata fits its schemas already.
 */
export function acceptPayment(
  input: AcceptedInput,
  call: AcceptedCall,
  uri: string,
): AcceptedInput | Promise<AcceptedInput> {
  const status = input.message.metadata?.[x402Keys.status];
  return status === undefined || status === null ? input : submitted(input, status as PaymentStatus, call, uri);
}

async function submitted(
  input: AcceptedInput,
  status: PaymentStatus,
  { rows, extensions }: AcceptedCall,
  uri: string,
): Promise<AcceptedInput> {
  const { message } = input;
  if (!clientStatuses.includes(status)) {
    throw refused("status", `must be ${clientStatuses.join(" or ")}: the agent sets the others`);
  }
  if (message.taskId === undefined) throw refused("status", "requires message.taskId");
  const { charges } = paymentsOf(await rows.read());
  const other = uri === x402UriV01 ? x402UriV02 : x402UriV01;
  // The caller has activated both versions, and the agent charges with the other one.
  if (charges.size === 0 && extensions.includes(other)) return input;
  // Of several offers it is for the one that was asked for last: its agent has asked nothing else since.
  const [id, charge] =
    [...charges]
      .filter(([, each]) => mayMovePayment(each.status, "payment-submitted"))
      .toSorted(([, one], [, another]) => askedIn(another) - askedIn(one))[0] ?? [];
  if (id === undefined || charge === undefined) throw refused("status", "this task asks for no payment now");
  const hasPayload = (message.metadata?.[x402Keys.payload] ?? undefined) !== undefined;
  if (status === "payment-submitted") {
    if (charge.cart === undefined && !hasPayload) throw refused("payload", "is required");
    if (charge.cart !== undefined && hasPayload) throw refused("payload", "must be in the payment mandate (v0.2 §7)");
    if (charge.cart !== undefined && paymentOfMandate(message.parts) === undefined) {
      throw invalidParams([{ field: "message.parts", description: "have no payment mandate with a payment of x402" }]);
    }
  }
  // Its turn finds out what it says: a client may also refuse to pay.
  const { key, value } = chargeRow(id, { ...charge, status: "payment-submitted", messageId: message.messageId });
  rows.set(key, value);
  return input;
}

function askedIn({ asked, turn }: StoredCharge): number {
  return asked ?? turn;
}

function refused(name: keyof typeof x402Keys, description: string): A2AError {
  return invalidParams([{ field: `message.metadata.${x402Keys[name]}`, description }]);
}
