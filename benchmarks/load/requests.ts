import { Connection, rendered, type Request } from "./http.ts";
import { summary, type Latencies } from "./latencies.ts";

export interface RequestLoad {
  /** The request of all connections, or a list that the connections take in turn, each repeating its own request. */
  readonly request: Request | readonly Request[];
  /** A text that every correct response contains. */
  readonly expect: string;
  readonly connections: number;
  /** The round ends after this many seconds or requests, whichever comes first. */
  readonly seconds: number;
  readonly most: number;
}

export interface RequestOutcome extends Latencies {
  readonly operations: number;
  readonly seconds: number;
}

/** A connection, and the function that creates its next request. */
interface Driver {
  readonly connection: Connection;
  readonly next: () => string;
}

function connectionsOf({ request, connections }: RequestLoad): readonly Driver[] {
  const requests = [request].flat();
  const renderers = requests.map(rendered);
  return Array.from({ length: connections }, (_, at) => ({
    connection: new Connection((requests[at % requests.length] as Request).url),
    next: renderers[at % requests.length] as () => string,
  }));
}

/** Closed loop: each connection sends its next request after the response to the last one. */
export async function requests(load: RequestLoad): Promise<RequestOutcome> {
  const drivers = connectionsOf(load);
  const latencies: number[] = [];
  const start = performance.now();
  const end = start + load.seconds * 1000;
  let sent = 0;
  const drive = async ({ connection, next }: Driver): Promise<void> => {
    for (let now = performance.now(); now < end && sent < load.most;) {
      sent += 1;
      const answer = await connection.send(next());
      check(answer.ok && answer.body.includes(load.expect), load.expect, answer.body);
      const then = now;
      now = performance.now();
      latencies.push(now - then);
    }
  };
  try {
    await Promise.all(drivers.map(drive));
  } finally {
    for (const { connection } of drivers) connection.close();
  }
  return { operations: sent, seconds: (performance.now() - start) / 1000, ...summary(latencies) };
}

export interface PacedLoad extends RequestLoad {
  /** Requests to send per second. */
  readonly rate: number;
}

/**
 * Open loop: each request is sent at its scheduled time, whether or not earlier ones have been answered. Its latency counts from the
 * moment at which this program notices that it is due: timers can be a millisecond late, which is most of a latency here, and a program
 * that polls without a pause takes a core from the server.
 */
export async function paced(load: PacedLoad): Promise<RequestOutcome> {
  const all = connectionsOf(load);
  const free = [...all];
  const waiting: number[] = [];
  const latencies: number[] = [];
  const failures: unknown[] = [];
  const start = performance.now();
  const total = Math.min(load.most, Math.floor(load.seconds * load.rate));
  // An overloaded server must not stop the run.
  const patience = start + load.seconds * 2000;

  const serve = (driver: Driver): void => {
    const { connection, next } = driver;
    const due = waiting.shift();
    if (due === undefined) {
      free.push(driver);
      return;
    }
    connection.send(next()).then(
      (answer) => {
        if (!answer.ok || !answer.body.includes(load.expect)) failures.push(answer.body.toString());
        latencies.push(performance.now() - due);
        serve(driver);
      },
      (error: unknown) => failures.push(error),
    );
  };
  for (let sent = 0; latencies.length < total && failures.length === 0 && performance.now() < patience;) {
    for (; sent < total && performance.now() >= start + (sent * 1000) / load.rate; sent++) {
      waiting.push(performance.now());
      const driver = free.shift();
      if (driver !== undefined) serve(driver);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seconds = (performance.now() - start) / 1000;
  for (const { connection } of all) connection.close();
  if (failures.length > 0 && latencies.length < total) throw new Error(`a request failed: ${String(failures[0])}`);
  return { operations: latencies.length, seconds, ...summary(latencies) };
}

function check(right: boolean, expected: string, body: Buffer): void {
  if (!right) throw new Error(`an answer does not contain ${expected}: ${body.subarray(0, 500).toString()}`);
}
