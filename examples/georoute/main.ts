import { readFileSync } from "node:fs";
import { openIdConnect } from "@parley/a2a/auth";
import { makeCardKey, type PrivateCardKey } from "@parley/a2a/cards";
import { serve } from "@parley/node";
import { routePlanner } from "./agent.ts";
import { usualTraffic } from "./roads.ts";
import { read } from "./scripted.ts";

const agent = routePlanner(read, usualTraffic);
// As on the sample card: ISSUER=https://accounts.google.com. Without it, everyone on this machine may call.
const issuer = process.env["ISSUER"];
const scopes = ["openid", "profile", "email"];
// The sample card is signed. CARD_KEY is a file with a key of `parley card key`; without it, each start creates a new key.
const file = process.env["CARD_KEY"];
const key = file === undefined ? await makeCardKey() : (JSON.parse(readFileSync(file, "utf8")) as PrivateCardKey);
const mount = { agent, interfaces: { JSONRPC: "/a2a/v1", "HTTP+JSON": "/a2a/json" } };
const { url } = await serve([issuer === undefined ? mount : { ...mount, extendedCard: (card) => card }], {
  port: Number(process.env["PORT"] ?? 4000),
  grpc: true,
  push: true,
  signCards: { keys: [key] },
  ...(issuer !== undefined && { authenticator: openIdConnect({ name: "google", issuer, scopes }) }),
});
console.log(`Route planner at ${url}`);
