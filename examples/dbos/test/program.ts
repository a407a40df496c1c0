import { DBOS } from "@dbos-inc/dbos-sdk";
import { serve, type Server } from "@parley/node";
import { postgresStore } from "@parley/sql/postgres";
import { appendFileSync, readFileSync } from "node:fs";
import { cancelOrders, orderDesk } from "../agent.ts";
import { orders } from "../workflow.ts";

// The order desk with a shop that ends its process: node program.ts DATABASE_URL PORT FILE [WORD COUNT]. Each call of the shop is a line of
// FILE: its word, then its subject. The process dies after line number COUNT of WORD. Prints a line once it listens.

const [database = "", port, file = "", word = "", count = "0"] = process.argv.slice(2);

function note(line: string): void {
  appendFileSync(file, `${line}\n`);
  const lines = readFileSync(file, "utf8").split("\n");
  const same = lines.filter((each) => each.startsWith(`${word} `)).length;
  if (line.startsWith(`${word} `) && same === Number(count)) process.kill(process.pid, "SIGKILL");
}

let listening!: (server: Server) => void;
const server = new Promise<Server>((resolve) => {
  listening = resolve;
});
const order = orders({
  async reserve(key, item) {
    note(`reserve ${key}`);
    return { price: item.length };
  },
  async charge(key) {
    note(`charge ${key}`);
    return { receipt: "r-1" };
  },
  async report(taskId, number, report) {
    note(`before ${number}`);
    await (await server).signal(taskId, "report", { ...report }, { id: String(number) });
    note(`after ${number}`);
  },
});
DBOS.setConfig({ name: "orders", systemDatabaseUrl: database, logLevel: "error" });
await DBOS.launch();
const store = await postgresStore({ database });
listening(await serve(orderDesk(order), { port: Number(port), store, interceptors: [cancelOrders], logger: false }));
console.log((await server).url);
