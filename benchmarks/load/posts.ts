import { Agent, request } from "node:http";
import { answerParent } from "../ipc.ts";
import type { Sample } from "./receivers.ts";

// The baseline of a webhook: Node's clients alone, which post the same bytes repeatedly, one request at a time to each
// receiver.

export interface Posting extends Sample {
  readonly urls: readonly string[];
  /** Requests to each receiver. */
  readonly each: number;
  readonly client: "http" | "fetch";
}

export interface Posted {
  readonly operations: number;
  readonly seconds: number;
  /** Microseconds. */
  readonly cpu: number;
}

const agent = new Agent({ keepAlive: true });
/** Headers that the connection sets itself. */
const own = /^(?:host|connection|content-length)$/i;

function byHttp(url: string, headers: Record<string, string>, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers }, (answer) => {
      answer.resume().on("end", resolve);
    });
    sent.on("error", reject).end(body);
  });
}

async function byFetch(url: string, headers: Record<string, string>, body: string): Promise<void> {
  await (await fetch(url, { method: "POST", headers, body })).arrayBuffer();
}

answerParent({
  async post({ urls, each, client, headers: raw, body }: Posting): Promise<Posted> {
    const pairs = raw.flatMap((name, at) => (at % 2 === 0 && !own.test(name) ? [[name, raw[at + 1] ?? ""]] : []));
    const headers = Object.fromEntries(pairs) as Record<string, string>;
    const send = client === "http" ? byHttp : byFetch;
    const [before, start] = [process.cpuUsage(), performance.now()];
    await Promise.all(
      urls.map(async (url) => {
        for (let sent = 0; sent < each; sent++) await send(url, headers, body);
      }),
    );
    const { user, system } = process.cpuUsage(before);
    return { operations: urls.length * each, seconds: (performance.now() - start) / 1000, cpu: user + system };
  },
});
