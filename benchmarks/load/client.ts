import type { AgentCard } from "@parley/server";

export interface ClientLoad {
  readonly url: string;
  readonly text: string;
}

export interface ClientOutcome {
  readonly operations: number;
  /** The number of characters in the texts of all chunks. */
  readonly characters: number;
  readonly seconds: number;
  /** CPU time of the client's process for the whole stream, in microseconds. */
  readonly cpu: number;
  /** Resident memory in bytes. */
  readonly rss: number;
}

export function cardOf(url: string): AgentCard {
  return {
    name: "Benchmark",
    description: "Streams what it is told.",
    version: "1.0.0",
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
}

/** Reads all events and the text of each, and measures the cost. */
export async function measured<T>(
  events: AsyncIterable<T>,
  textOf: (event: T) => string | undefined,
): Promise<ClientOutcome> {
  const before = process.cpuUsage();
  const start = performance.now();
  let operations = 0;
  let characters = 0;
  for await (const event of events) {
    operations += 1;
    characters += textOf(event)?.length ?? 0;
  }
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - start) / 1000;
  return { operations, characters, seconds, cpu: user + system, rss: process.memoryUsage.rss() };
}
