import { connect } from "@parley/a2a";
import { serve } from "@parley/node";
import { orchestrator } from "./agent.ts";
import { makeExperts } from "./experts.ts";
import { planner, scripted } from "./planner.ts";

const port = Number(process.env["PORT"] ?? 4000);
const at = (name: string) => connect(`http://127.0.0.1:${port}/${name}`);
const agent = orchestrator(async () => ({
  planner: await at("planner"),
  flights: await at("flights"),
  hotels: await at("hotels"),
  cars: await at("cars"),
}));

const behind = { planner: planner(scripted), ...makeExperts(Number(process.env["PAUSE"] ?? 1000) * 10) };
const mounts = Object.entries(behind).map(([name, one]) => ({ agent: one, path: `/${name}` }) as const);
const { url } = await serve([{ agent }, ...mounts], { port });
console.log(`Travel planner at ${url}`);
