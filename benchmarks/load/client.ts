import type { AgentCard } from "@parley/a2a";

export interface ClientLoad {
  readonly url: string;
  readonly text: string;
}

export interface ClientOutcome {
  readonly operations: number;
  /** Of the chunks' texts, all of them. */
  readonly characters: number;
  readonly seconds: number;
  /** Microseconds of the client's process, all of the stream. */
  readonly cpu: number;
  /** Bytes resident. */
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

/** Reads events to their end, the text of each too, and what that took. */
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
