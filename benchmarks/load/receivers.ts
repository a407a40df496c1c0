import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { answerParent } from "../ipc.ts";
import { summary, type Latencies } from "./latencies.ts";

// Webhook receivers, each with its own origin: live ones, which answer immediately, and dead ones, which accept a connection and
// never answer.

export interface Receivers {
  readonly live: readonly string[];
  readonly dead: readonly string[];
}

/** A received request, for clients that post the same bytes. */
export interface Sample {
  readonly headers: readonly string[];
  readonly body: string;
}

export interface Arrived extends Latencies {
  /** Deliveries to live receivers since the last call. */
  readonly operations: number;
  /** The time from the first delivery to the last. */
  readonly seconds: number;
  readonly sample: Sample;
}

let arrivals: number[] = [];
let latencies: number[] = [];
let sample: Sample = { headers: [], body: "" };
let wake = (): void => {};

const now = (): number => performance.timeOrigin + performance.now();

function arrived(body: string, headers: readonly string[]): void {
  const at = now();
  const made = /@([\d.]+)@/.exec(body)?.[1];
  arrivals.push(at);
  if (made !== undefined) {
    latencies.push(at - Number(made));
    sample = { headers, body };
  }
  wake();
}

function live(): Server {
  return createHttpServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => (body += text));
    request.on("end", () => {
      response.writeHead(204).end();
      arrived(body, request.rawHeaders);
    });
  });
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const times = (count: number, make: () => Server): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => listening(make())));

/** Resolves after this many deliveries. Rejects after a minute. */
async function take(wanted: number): Promise<Arrived> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    wake();
  }, 60_000);
  while (arrivals.length < wanted && !late) await new Promise<void>((resolve) => (wake = resolve));
  clearTimeout(timer);
  const operations = arrivals.length;
  if (operations < wanted) throw new Error(`${operations} of ${wanted} webhooks came within a minute`);
  const seconds = ((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)) / 1000;
  const outcome = { operations, seconds, ...summary(latencies), sample };
  [arrivals, latencies] = [[], []];
  return outcome;
}

answerParent({
  open: async (input: { readonly live: number; readonly dead: number }): Promise<Receivers> => ({
    live: await times(input.live, live),
    dead: await times(input.dead, () => createServer((socket) => void socket.on("error", () => {}).resume())),
  }),
  take: (input: { readonly wanted: number }) => take(input.wanted),
});
