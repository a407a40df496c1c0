import * as z from "zod";

/** What the search begins with. Amounts are in dollars. */
export const Plan = z.object({
  /** The traveller's language. */
  language: z.enum(["en", "zh"]),
  city: z.string(),
  month: z.string(),
  days: z.number().int().positive(),
  /** The maximum price of each part. */
  budget: z.object({ flight: z.number(), hotel: z.number(), car: z.number() }),
});
export type Plan = z.infer<typeof Plan>;

/** What an agent has found. */
export const Option = z.object({ price: z.number(), what: z.string() });
