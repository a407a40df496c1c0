import { DBOS } from "@dbos-inc/dbos-sdk";
import { serve, type Server } from "@parley/node";
import { postgresStore } from "@parley/sql/postgres";
import { cancelOrders, orderDesk } from "./agent.ts";
import { orders, type Report } from "./workflow.ts";

const database = process.env["DATABASE_URL"] ?? "postgres://postgres@localhost/orders";

// Workflows that were interrupted continue in `DBOS.launch()`, before the server is there.
let listening!: (server: Server) => void;
const server = new Promise<Server>((resolve) => {
  listening = resolve;
});

const order = orders({
  // In place of a shop and a payment service with idempotency keys.
  reserve: async (_key: string, item: string) => ({ price: item.length * 5 }),
  charge: async (key: string) => ({ receipt: `receipt ${key.slice(-6)}` }),
  async report(taskId: string, number: number, report: Report) {
    await (await server).signal(taskId, "report", { ...report }, { id: String(number) });
  },
});
DBOS.setConfig({ name: "orders", systemDatabaseUrl: database });
await DBOS.launch();
listening(
  await serve(orderDesk(order), {
    port: Number(process.env["PORT"] ?? 4000),
    store: await postgresStore({ database }),
    interceptors: [cancelOrders],
  }),
);
console.log(`Order desk at ${(await server).url}`);
