import { utf8Length } from "@parley/a2a/internal/base/index";
import { check, type JsonObject } from "@parley/a2a/internal/model/index";
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

/* The schemas of what the extension puts into metadata. `null` counts as absent: the library for Python writes it. */

/** Most ways to pay in one offer. */
export const maxOptions = 16;

/** Most bytes of an option that is paid, and of a cart that is read. An agent of this package writes 8 KiB of both. */
export const maxOption: number = 16 << 10;
export const maxCart: number = 32 << 10;

/** Text of limited length, in characters. */
function text(most: number, least = 0): Schema<string> {
  return satisfying(
    string,
    `must be a string of ${least} to ${most} characters`,
    ({ length }) => length >= least && length <= most,
  );
}

const name = text(256, 1);
const anyText = text(2048);
const anyObject: Schema<JsonObject> = struct;

/** An amount: decimal digits, as many as a number of 256 bits has. */
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

/** Most bytes of a signed payment. It is kept with the task, in a row, together with what was offered. */
const maxPayload = 8192;

const signed = satisfying(
  anyObject,
  `must not take more than ${maxPayload} bytes of JSON`,
  (value) => utf8Length(JSON.stringify(value)) <= maxPayload,
);

/** Most bytes of all of it. The option that a wallet repeats has members of any size. */
export const maxPayment: number = 12 << 10;

export const payloadSchema: Schema<PaymentPayload> = satisfying(
  object<PaymentPayload>({
    x402Version: required(integer(1)),
    scheme: required(name),
    network: required(name),
    payload: required(signed),
    accepted: optional(requirementsSchema),
  }),
  `must not take more than ${maxPayment} bytes of JSON`,
  (payment) => utf8Length(JSON.stringify(payment)) <= maxPayment,
);

export const receiptSchema: Schema<PaymentReceipt> = object<PaymentReceipt>({
  success: required(boolean),
  transaction: optional(anyText),
  network: optional(text(256)),
  payer: optional(text(256)),
  errorReason: optional(anyText),
});

export const receiptsSchema: Schema<readonly PaymentReceipt[]> = list(receiptSchema);

export const errorSchema: Schema<string> = text(256, 1);

/** The value, where it fits a schema. */
export function fitting<T>(schema: Schema<T>, value: unknown): T | undefined {
  const checked = check(schema, value, "copy");
  return checked.ok ? checked.value : undefined;
}
