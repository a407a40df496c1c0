import { serve } from "@parley/node";
import agent from "./agent.ts";

// At the path of the guide.
const path = "/agents/eightball";
const { url } = await serve([{ agent, path }], { port: Number(process.env["PORT"] ?? 4000) });
console.log(`Magic 8-ball at ${url}${path}`);
