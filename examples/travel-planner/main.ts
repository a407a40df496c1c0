import { connect } from "@parley/a2a/client";
import { serve } from "@parley/node";
import { planner } from "./agent.ts";
import { flights, hotels } from "./experts.ts";

const port = Number(process.env["PORT"] ?? 4000);
const expertsAt = `http://127.0.0.1:${port}`;
const agent = planner(async () => ({
  flights: await connect(`${expertsAt}/flights`),
  hotels: await connect(`${expertsAt}/hotels`),
}));

const { url } = await serve([{ agent }, { agent: flights, path: "/flights" }, { agent: hotels, path: "/hotels" }], {
  port,
});
console.log(`Travel planner at ${url}`);
