// TaskFold of @parley/a2a/model

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
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


import { TaskFold } from "@parley/a2a/model";
export async function* example() {
const fold = new TaskFold();
fold.apply({ task: { id: "1", contextId: "1", status: { state: "TASK_STATE_SUBMITTED" } } });
fold.apply({ statusUpdate: { taskId: "1", contextId: "1", status: { state: "TASK_STATE_WORKING" } } });
fold.snapshot().status.state; // "TASK_STATE_WORKING"

}