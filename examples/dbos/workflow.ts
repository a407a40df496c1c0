import { DBOS } from "@dbos-inc/dbos-sdk";

/* An order in a program on DBOS. It knows nothing of A2A: it reports its progress, and gets answers as messages. */

/** What an order reports. `ask` waits for an answer, and `end` is the last. */
export interface Report {
  readonly kind: "progress" | "ask" | "end" | "refused";
  readonly text: string;
}

/** Dependencies of an order. */
export interface Shop {
  /** Both take the key of the order, and are idempotent by it. */
  reserve(key: string, item: string): Promise<{ readonly price: number }>;
  charge(key: string, price: number): Promise<{ readonly receipt: string }>;
  /** Notifies those who wait for this order. A repeated number is the same report. */
  report(order: string, number: number, report: Report): Promise<void>;
}

/** The topic of the customer's answers. */
export const answers = "answers";

/** How long an offer holds, in seconds: a week. */
const patience = 7 * 24 * 60 * 60;

/** Makes the workflow. Call it before `DBOS.launch()`. */
export function orders(shop: Shop): (item: string) => Promise<void> {
  return DBOS.registerWorkflow(
    async (item: string) => {
      const order = DBOS.workflowID ?? "";
      let reports = 0;
      const say = async (kind: Report["kind"], text: string): Promise<void> => {
        const number = (reports += 1);
        await DBOS.runStep(() => shop.report(order, number, { kind, text }), {
          name: `report ${number}`,
          retriesAllowed: true,
        });
      };

      const { price } = await DBOS.runStep(() => shop.reserve(order, item), { name: "reserve" });
      await say("progress", `${item} is reserved`);
      await say("ask", `It costs ${price} euros. Shall I buy it?`);
      const answer = await DBOS.recv<string>(answers, { timeoutSeconds: patience });
      if (!/^\s*yes\b/i.test(answer ?? "")) return say("refused", `${item} was not bought`);
      const { receipt } = await DBOS.runStep(() => shop.charge(order, price), { name: "charge" });
      await say("progress", `Paid: ${receipt}`);
      await say("end", `${item} is on its way`);
    },
    { name: "order" },
  );
}
