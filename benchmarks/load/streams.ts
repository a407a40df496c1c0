import { request as httpRequest, Agent, type ClientRequest, type IncomingMessage } from "node:http";
import { messageIds, idMark, type Request } from "./http.ts";
import { summary, type Latencies } from "./latencies.ts";

interface Open {
  readonly call: ClientRequest;
  /** Resolves once the head of the response has arrived. */
  readonly opened: Promise<IncomingMessage>;
}

const agent = new Agent({ keepAlive: false, maxSockets: Infinity });
const nextId = messageIds();

function open({ method, url, body, headers }: Request): Open {
  const call = httpRequest(url, {
    method,
    agent,
    headers: {
      ...headers,
      "a2a-version": "1.0",
      accept: "text/event-stream",
      ...(body !== undefined && { "content-type": "application/json", "content-length": body.length }),
    },
  });
  const opened = new Promise<IncomingMessage>((resolve, reject) => {
    call.on("error", reject);
    call.on("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode === 200) resolve(response);
      else reject(new Error(`a stream was answered with status ${statusCode}`));
    });
  });
  call.end(body?.replace(idMark, nextId()));
  return { call, opened };
}

const mark = Buffer.from('"artifactUpdate"');

/** Counts the chunks in bytes that may be split anywhere. */
class ChunkCounter {
  count = 0;
  #tail: Buffer = Buffer.alloc(0);

  take(data: Buffer): void {
    const text = this.#tail.length === 0 ? data : Buffer.concat([this.#tail, data]);
    for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) {
      this.count += 1;
    }
    // Marks cannot overlap.
    this.#tail = text.subarray(Math.max(0, text.length - mark.length + 1));
  }
}

export interface StreamLoad {
  readonly request: Request;
  /** The reader closes the stream after this many chunks. */
  readonly chunks: number;
  /** Or after this many seconds. */
  readonly seconds: number;
  /** Whether to wait until the server ends the stream after the last chunk. */
  readonly ends: boolean;
}

export interface StreamOutcome {
  readonly chunks: number;
  readonly seconds: number;
  /** Milliseconds from the request to the first chunk. */
  readonly first: number;
}

/** Reads one stream to its end. */
export async function stream(load: StreamLoad): Promise<StreamOutcome> {
  const start = performance.now();
  const { call, opened } = open(load.request);
  const response = await opened;
  const counter = new ChunkCounter();
  let first = Number.NaN;
  let seconds = 0;
  const timer = setTimeout(() => call.destroy(), load.seconds * 1000);
  await new Promise<void>((resolve) => {
    response.on("data", (data: Buffer) => {
      counter.take(data);
      if (counter.count > 0 && Number.isNaN(first)) first = performance.now() - start;
      seconds = (performance.now() - start) / 1000;
      if (counter.count >= load.chunks) resolve();
    });
    response.on("error", () => resolve());
    response.on("close", () => resolve());
  });
  clearTimeout(timer);
  if (load.ends && counter.count >= load.chunks) await ended(response, 1_000);
  call.destroy();
  return { chunks: counter.count, seconds, first };
}

/** Waits until a server that has sent everything ends the stream. */
async function ended(response: IncomingMessage, patience: number): Promise<void> {
  if (response.readableEnded || response.destroyed) return;
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    new Promise<void>((resolve) => response.once("close", () => resolve())),
    new Promise<void>((resolve) => (timer = setTimeout(resolve, patience))),
  ]);
  clearTimeout(timer);
}

export interface FanInLoad {
  /** The request of each stream, or a list of requests, which the streams take in turn. */
  readonly request: Request | readonly Request[];
  /** The request that starts all streams, sent once each has its first event. */
  readonly begin: Request;
  readonly streams: number;
  readonly chunks: number;
  readonly seconds: number;
}

export interface FanInOutcome extends Latencies {
  readonly chunks: number;
  readonly seconds: number;
}

const stamp = /@(\d+\.\d+)@/g;

/** Reads many streams in parallel. Their chunks contain the time at which they were created. */
export async function fanIn(load: FanInLoad): Promise<FanInOutcome> {
  const latencies: number[] = [];
  let lastAt = 0;
  let ready = 0;
  let allReady = (): void => {};
  const calls: ClientRequest[] = [];
  const requests = [load.request].flat();
  const read = async (_: unknown, at: number): Promise<void> => {
    const { call, opened } = open(requests[at % requests.length] as Request);
    calls.push(call);
    const response = await opened;
    response.setEncoding("latin1");
    let rest = "";
    let hasBegun = false;
    await new Promise<void>((resolve) => {
      response.on("data", (data: string) => {
        // A comment precedes the first event: the request is accepted, but its task has not been read yet.
        if (!hasBegun && data.includes("data:")) {
          hasBegun = true;
          ready += 1;
          if (ready === load.streams) allReady();
        }
        lastAt = performance.now();
        const now = performance.timeOrigin + lastAt;
        const text = rest + data;
        let end = 0;
        for (const match of text.matchAll(stamp)) {
          latencies.push(now - Number(match[1]));
          end = match.index + match[0].length;
        }
        rest = text.slice(Math.max(end, text.length - 32));
      });
      response.on("error", () => resolve());
      response.on("close", () => resolve());
    });
  };
  const gathered = new Promise<void>((resolve) => (allReady = resolve));
  const all = Promise.all(Array.from({ length: load.streams }).map(read));
  // If a stream fails, the run ends, even if not all streams are open.
  await Promise.race([gathered, all]);
  const start = performance.now();
  const { call, opened } = open(load.begin);
  (await opened).resume();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, load.seconds * 1000)));
  await Promise.race([all, late]);
  clearTimeout(timer);
  for (const one of [call, ...calls]) one.destroy();
  await all;
  return { chunks: latencies.length, seconds: (lastAt - start) / 1000, ...summary(latencies) };
}

export interface CrowdLoad {
  /** The request of each stream, or a list of requests, which the streams take in turn. */
  readonly request: Request | readonly Request[];
  readonly streams: number;
}

export interface ServedOutcome {
  /** Milliseconds from the request that creates the event until the first stream, and the last one, has received it. */
  readonly first: number;
  readonly last: number;
}

/** Many open streams. */
export class Crowd {
  readonly #counters: ChunkCounter[] = [];
  readonly #calls: ClientRequest[] = [];
  #served: (() => void) | undefined;

  /** Opens them, a few hundred at a time. Resolves once each response has begun. */
  async open({ request, streams }: CrowdLoad): Promise<void> {
    const requests = [request].flat();
    for (let from = 0; from < streams; from += 250) {
      const some = Array.from({ length: Math.min(250, streams - from) }, (_, at) => (from + at) % requests.length);
      await Promise.all(some.map((at) => this.#join(requests[at] as Request)));
    }
  }

  async #join(request: Request): Promise<void> {
    const { call, opened } = open(request);
    const response = await opened;
    const counter = new ChunkCounter();
    this.#calls.push(call);
    this.#counters.push(counter);
    response.on("error", () => {});
    response.on("data", (data: Buffer) => {
      const before = counter.count;
      counter.take(data);
      if (counter.count > before) this.#served?.();
    });
  }

  /**
   * Waits until all have received a chunk, or for this many seconds. Returns the arrival times, in milliseconds of the clock that all
   * processes share.
   */
  hear({ seconds }: { readonly seconds: number }): Promise<readonly number[]> {
    const heard: number[] = [];
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(heard), seconds * 1000);
      this.#served = () => {
        heard.push(performance.timeOrigin + performance.now());
        if (heard.length < this.#calls.length) return;
        clearTimeout(timer);
        resolve(heard);
      };
    });
  }

  /** Sends a request that creates one event for all streams, and waits until all have received it. */
  async emit({ request }: { readonly request: Request }): Promise<ServedOutcome> {
    const start = performance.now();
    let first = 0;
    let served = 0;
    const all = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("some streams did not receive the event")), 30_000);
      this.#served = () => {
        served += 1;
        if (served === 1) first = performance.now() - start;
        if (served < this.#calls.length) return;
        clearTimeout(timer);
        resolve();
      };
    });
    const { call, opened } = open(request);
    (await opened).resume();
    await all;
    call.destroy();
    return { first, last: performance.now() - start };
  }

  close(): void {
    for (const call of this.#calls.splice(0)) call.destroy();
    this.#counters.length = 0;
  }
}
