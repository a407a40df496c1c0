import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  McpServer,
  type CallToolResult,
} from "@modelcontextprotocol/server";
import * as z from "zod";

/* The agents' tools, each an MCP server. Tools have inputs and results, but no conversation. */

const says = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });

/** A call of a tool. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: object;
}

/** Called before the tool does anything; the tool awaits it. */
export type OnCall = (name: string, args: object) => unknown;

/** The mechanic's tools: the scanner, the manual and the platform. */
export function workshopTools(onCall: OnCall = () => undefined): () => McpServer {
  return () => {
    const server = new McpServer({ name: "workshop", version: "1.0.0" });
    const vehicle = z.object({ vehicle_id: z.string() });
    const scan = { description: "Reads the error codes of a vehicle", inputSchema: vehicle };
    server.registerTool("scan_vehicle_for_error_codes", scan, async (args) => {
      await onCall("scan_vehicle_for_error_codes", args);
      return says("P0300");
    });
    const code = z.object({ error_code: z.string(), vehicle_make: z.string(), vehicle_model: z.string() });
    const manual = { description: "Finds the procedure for an error code in the repair manual", inputSchema: code };
    server.registerTool("get_repair_procedure", manual, async (args) => {
      await onCall("get_repair_procedure", args);
      const { error_code, vehicle_make, vehicle_model } = args;
      if (error_code !== "P0300") return { ...says(`The manual has no ${error_code}.`), isError: true };
      return says(`${vehicle_make} ${vehicle_model}: random misfire. Raise it by 2 m, and replace part #12345.`);
    });
    const height = z.object({ height_meters: z.number().min(0).max(3) });
    const raise = { description: "Raises the platform with the vehicle", inputSchema: height };
    server.registerTool("raise_platform", raise, async (args) => {
      await onCall("raise_platform", args);
      return says(`The platform is at ${args.height_meters} m.`);
    });
    return server;
  };
}

/** The supplier's tools. `stock`: the number of each part. */
export function warehouseTools(stock: Map<string, number>): () => McpServer {
  const orders = new Set<string>();
  return () => {
    const server = new McpServer({ name: "warehouse", version: "1.0.0" });
    const get = { description: "Returns how many of a part are in stock", inputSchema: z.object({ part: z.string() }) };
    server.registerTool("get_stock", get, ({ part }) => {
      const answer = { part, available: stock.get(part) ?? 0, price: 49 };
      return { ...says(JSON.stringify(answer)), structuredContent: answer };
    });
    const one = z.object({ part: z.string(), order: z.string() });
    server.registerTool("take_part", { description: "Takes a part for an order", inputSchema: one }, (taken) => {
      const left = stock.get(taken.part) ?? 0;
      if (orders.has(taken.order)) return says("It is already on its way.");
      if (left === 0) return { ...says("It is out of stock."), isError: true };
      orders.add(taken.order);
      stock.set(taken.part, left - 1);
      return says("It is on its way.");
    });
    return server;
  };
}

/** Serves tools locally, and connects to them. */
export async function serveTools(make: () => McpServer): Promise<{ client: Client; close(): Promise<void> }> {
  const handler = createMcpHandler(make);
  const listener = getRequestListener(
    (request) => hostHeaderValidationResponse(request, localhostAllowedHostnames()) ?? handler.fetch(request),
    { overrideGlobalObjects: false },
  );
  const server = createServer((request, response) => void listener(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = new Client({ name: "car-repair", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/`)));
  return {
    client,
    async close() {
      await client.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
