import { randomUUID } from "node:crypto";
import { serve } from "@parley/node";
import { addressDesk } from "./agent.ts";
import { startProvider } from "./provider.ts";
import { recordsOf } from "./records.ts";
import { read } from "./scripted.ts";

const port = Number(process.env["PORT"] ?? 4000);
const id = process.env["CLIENT_ID"] ?? "address-desk";
const secret = process.env["CLIENT_SECRET"] ?? randomUUID();
const redirectUri = `http://127.0.0.1:${port}/.well-known/parley/authorization`;
const server = process.env["ISSUER"] ?? (await startProvider(port + 1, { id, secret, redirectUri }));

const login = { server, clientId: id, clientSecret: secret };
const holds = process.env["HOLDS"] === "email" ? "email" : "postal";
const agent = addressDesk({ login, holds, read, change: recordsOf(server).change });
const { url } = await serve(agent, { port });
console.log(`Address desk at ${url}, with the OpenID provider ${server}`);
