import { serve } from "@parley/node";
import { imageAgent } from "./agent.ts";
import { scripted } from "./scripted.ts";

const { url } = await serve(imageAgent(scripted(Number(process.env["PAUSE"] ?? 1000))), {
  port: Number(process.env["PORT"] ?? 4000),
});
console.log(`Image generator at ${url}`);
