import * as z from "zod";

/** What the form asks for. */
export const Expense = z.object({
  date: z.iso.date(),
  amount: z.number().positive().max(10_000),
  purpose: z.string().min(1).max(200),
});
export type Expense = z.infer<typeof Expense>;

/** The form as JSON Schema, for clients that draw one. */
export const form = z.toJSONSchema(Expense) as {
  readonly properties: Readonly<Record<string, { readonly type: string }>>;
};

/** Amounts above it need somebody who approves. */
export const free = 100;
