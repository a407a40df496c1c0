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
  readonly properties: Readonly<Record<string, { readonly type: string; readonly default?: string | number }>>;
};

/** The form with what a message already says: “$20” and “for my lunch with the clients” are the defaults of their fields. */
export function formAfter(said: string): typeof form {
  const { amount, purpose, ...others } = form.properties;
  const [, dollars] = /\$ ?(\d+(?:\.\d+)?)/.exec(said) ?? [];
  const [, reason] = /\bfor (?:my |a |the )?([^.?!]+)/i.exec(said) ?? [];
  const properties = {
    ...others,
    amount: { type: "number", ...amount, ...(dollars !== undefined && { default: Number(dollars) }) },
    purpose: { type: "string", ...purpose, ...(reason !== undefined && { default: reason }) },
  };
  return { ...form, properties };
}

/** Amounts above it need an approver. */
export const free = 100;
