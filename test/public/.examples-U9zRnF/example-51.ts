// dataOf of @parley/a2a/client

import assert from "node:assert/strict";
import type { Agent, AgentService, CallContext, Store, Turn } from "@parley/a2a";
import type { ServerBinding } from "@parley/a2a";
import type { PrivateCardKey } from "@parley/a2a/cards";
import type { Client, ClientBinding } from "@parley/a2a/client";
import type { Report } from "@parley/conform";
declare namespace Deno {
  interface ServeHandlerInfo {
    readonly remoteAddr: { readonly hostname: string };
  }
}
declare const agent: Agent;
declare const body: string;
declare const cardKey: PrivateCardKey;
declare const client: Client;
declare const weather: Client;
declare const flights: Client;
declare const hotels: Client;
declare const context: CallContext;
declare const error: unknown;
declare const next: AgentService;
declare const operation: never;
declare const part: { readonly url: string };
declare const report: Report;
declare const request: never;
declare const taskId: string;
declare const tokens: AsyncIterable<string>;
declare const turn: Turn;
declare function myStore(): Store;
declare function webSocketBinding(): ClientBinding;
declare function webSocketServerBinding(): ServerBinding;
declare function redact<T>(value: T): T;
declare function stopJob(): Promise<void>;

import * as z from "zod";
import { dataOf } from "@parley/a2a/client";
export async function* example() {


const Forecast = z.object({ city: z.string(), degrees: z.number() });
const response = await client.sendMessage("Will it rain in Basel?");
const { degrees } = await dataOf(response, Forecast);

}