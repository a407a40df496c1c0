import { openIdConnect } from "@parley/a2a/auth";
import { serve } from "@parley/node";
import { routePlanner } from "./agent.ts";
import { usualTraffic } from "./roads.ts";
import { read } from "./scripted.ts";

const agent = routePlanner(read, usualTraffic);
// As on the sample card: ISSUER=https://accounts.google.com. Without it, everybody on this machine may call.
const issuer = process.env["ISSUER"];
const scopes = ["openid", "profile", "email"];
const mount = { agent, interfaces: { JSONRPC: "/a2a/v1", "HTTP+JSON": "/a2a/json" } };
const { url } = await serve([issuer === undefined ? mount : { ...mount, extendedCard: (card) => card }], {
  port: Number(process.env["PORT"] ?? 4000),
  push: true,
  ...(issuer !== undefined && { authenticator: openIdConnect({ name: "google", issuer, scopes }) }),
});
console.log(`Route planner at ${url}`);
