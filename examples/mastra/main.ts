import { serve } from "@parley/node";
import { agent } from "./agent.ts";

const { url } = await serve(agent, { port: Number(process.env["PORT"] ?? 4000) });
console.log(`Bursar at ${url}`);
