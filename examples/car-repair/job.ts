import * as z from "zod";

/** What the manager gives to the mechanic. */
export const Job = z.object({
  vehicle: z.object({ id: z.string(), year: z.number().int(), make: z.string(), model: z.string() }),
  complaint: z.string(),
  /** The customer's language. */
  language: z.enum(["en", "zh"]),
  /** What the video shows: fluid that leaks, and how many times a second something knocks. */
  leak: z.boolean(),
  knocks: z.number(),
});
export type Job = z.infer<typeof Job>;

/** The supplier's answer about a part. The price is in dollars. */
export const Stock = z.object({ part: z.string(), available: z.number().int(), price: z.number() });

/** The order to the supplier. */
export const Order = z.object({ order: z.string() });
