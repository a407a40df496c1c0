import { serve } from "@hono/node-server";
import { Mastra } from "@mastra/core";
import { InMemoryStore } from "@mastra/core/storage";
import { MastraServer, type HonoBindings, type HonoVariables } from "@mastra/hono";
import { InMemoryTaskStore } from "@mastra/server/a2a/store";
import { Hono } from "hono";
import { bursar } from "../../../examples/mastra/bursar.ts";

const port = Number(process.env["PORT"] ?? 4000);
const mastra = new Mastra({ agents: { bursar }, storage: new InMemoryStore() });
const app = new Hono<{ Bindings: HonoBindings; Variables: HonoVariables }>();
await new MastraServer({ app, mastra, taskStore: new InMemoryTaskStore() }).init();
serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, () => console.log(`Bursar at http://127.0.0.1:${port}`));
