import type { JsonObject } from "@parley/a2a/internal/model/index";
import {
  boolean,
  integer,
  list,
  object,
  oneName,
  optional,
  required,
  satisfying,
  type Schema,
  string,
  struct,
} from "@parley/a2a/internal/model/schema";
import {
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentRequirements,
  type PaymentStatus,
  paymentStatuses,
} from "./types.ts";
import { atMost, text } from "../shared/values.ts";

/* Schemas of the metadata. `null` means absent: the Python library writes it. */

/** Maximum number of options in an offer. */
export const maxOptions = 16;

/**
 * Largest option that is paid and largest cart that is read, in bytes. Agents of this package write at most 8 KiB of
 * both.
 */
export const maxOption: number = 16 << 10;
export const maxCart: number = 32 << 10;

const name = text(256);
const anyText = text(2048, 0);
const anyObject: Schema<JsonObject> = struct;

/** Decimal digits of a 256-bit number. */
const amount = satisfying(string, "must be a whole number in decimal digits, as text", (digits) =>
  /^\d{1,78}$/.test(digits),
);

export const statusSchema: Schema<PaymentStatus> = oneName(paymentStatuses);

export const requirementsSchema: Schema<PaymentRequirements> = object<PaymentRequirements>({
  scheme: required(name),
  network: required(name),
  asset: required(name),
  payTo: required(name),
  maxAmountRequired: required(amount),
  resource: optional(anyText),
  description: optional(anyText),
  mimeType: optional(name),
  outputSchema: optional(anyObject),
  maxTimeoutSeconds: optional(integer(0)),
  extra: optional(anyObject),
});

const options = satisfying(
  list(requirementsSchema, "must not be empty"),
  `must not have more than ${maxOptions} options`,
  ({ length }) => length <= maxOptions,
);

export const requiredSchema: Schema<PaymentRequiredResponse> = object<PaymentRequiredResponse>({
  x402Version: required(integer(1)),
  accepts: required(options),
  error: optional(anyText),
});

/** Largest signed payment, in bytes. It is stored in a row together with its offer. */
const maxPayload = 8192;

const signed = atMost(maxPayload, anyObject);

/** Largest payment as a whole, in bytes. The repeated option may have members of any size. */
export const maxPayment: number = 12 << 10;

export const payloadSchema: Schema<PaymentPayload> = atMost(
  maxPayment,
  object<PaymentPayload>({
    x402Version: required(integer(1)),
    scheme: required(name),
    network: required(name),
    payload: required(signed),
    accepted: optional(requirementsSchema),
  }),
);

export const receiptSchema: Schema<PaymentReceipt> = object<PaymentReceipt>({
  success: required(boolean),
  transaction: optional(anyText),
  network: optional(text(256, 0)),
  payer: optional(text(256, 0)),
  errorReason: optional(anyText),
});

export const receiptsSchema: Schema<readonly PaymentReceipt[]> = list(receiptSchema);

export const errorSchema: Schema<string> = text(256);
