import { serve } from "@parley/node";
import { travelDesk } from "./agent.ts";
import { scripted } from "./scripted.ts";

const { url } = await serve(travelDesk(scripted), { port: Number(process.env["PORT"] ?? 4000) });
console.log(`Travel desk at ${url}`);
