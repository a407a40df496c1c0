import { serve } from "@parley/node";
import { createAgent } from "./agent.ts";
import { mountPages } from "./pages.ts";

const agent = createAgent(Number(process.env["PAUSE"] ?? 150));
const { url } = await serve(agent, { port: Number(process.env["PORT"] ?? 4000), routes: await mountPages() });
console.log(`Travel agent at ${url}, and pages at ${url}/use-chat and ${url}/hooks`);
