import { connect } from "@parley/a2a";
import { serve } from "@parley/node";
import { shopManager } from "./manager.ts";
import { mechanic } from "./mechanic.ts";
import { listen, think } from "./scripted.ts";
import { partsSupplier } from "./supplier.ts";
import { serveTools, warehouseTools, workshopTools } from "./tools.ts";

const port = Number(process.env["PORT"] ?? 4000);
const pause = Number(process.env["PAUSE"] ?? 1000);
const workshop = await serveTools(workshopTools(() => new Promise((resolve) => setTimeout(resolve, pause))));
const warehouse = await serveTools(warehouseTools(new Map([["#12345", 3]])));

const at = (path: string) => connect(`http://127.0.0.1:${port}${path}`);
const tools = { tools: async () => workshop.client, supplier: () => at("/supplier") };
const { url } = await serve(
  [
    { agent: shopManager(listen, () => at("/mechanic")) },
    { agent: mechanic(think, tools), path: "/mechanic" },
    { agent: partsSupplier(async () => warehouse.client), path: "/supplier" },
  ],
  { port },
);
console.log(`Shop manager at ${url}`);
