import * as z from "zod";

/** The fields of the form. */
export const Expense = z.object({
  date: z.iso.date(),
  amount: z.number().positive().max(10_000),
  purpose: z.string().min(1).max(200),
});
export type Expense = z.infer<typeof Expense>;

/** The form as JSON Schema, for clients that show forms. */
export const form = z.toJSONSchema(Expense) as {
  readonly properties: Readonly<Record<string, { readonly type: string; readonly default?: string | number }>>;
};

/** The form with defaults from a message, such as “$20” and “for my lunch with the clients”. */
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
