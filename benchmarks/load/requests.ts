import { Connection, rendered, type Request } from "./http.ts";
import { summary, type Latencies } from "./latencies.ts";

export interface RequestLoad {
  readonly request: Request;
  /** A text that every correct answer contains. */
  readonly expect: string;
  readonly connections: number;
  /** The round ends after that many seconds or requests, whichever comes first. */
  readonly seconds: number;
  readonly most: number;
}

export interface RequestOutcome extends Latencies {
  readonly operations: number;
  readonly seconds: number;
}

/** Closed loop: each connection sends its next request after the answer to the last one. */
export async function requests(load: RequestLoad): Promise<RequestOutcome> {
  const next = rendered(load.request);
  const connections = Array.from({ length: load.connections }, () => new Connection(load.request.url));
  const latencies: number[] = [];
  const start = performance.now();
  const end = start + load.seconds * 1000;
  let sent = 0;
  const drive = async (connection: Connection): Promise<void> => {
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
    await Promise.all(connections.map(drive));
  } finally {
    for (const connection of connections) connection.close();
  }
  return { operations: sent, seconds: (performance.now() - start) / 1000, ...summary(latencies) };
}

export interface PacedLoad extends RequestLoad {
  /** Requests sent a second. */
  readonly rate: number;
}

/**
 * Open loop: each request is sent at its scheduled time, whether or not earlier ones are answered. Its latency counts from the
 * moment at which this program finds it due: timers can be a millisecond late, which is most of a latency here, and a program
 * that polls without pause takes a core from the server.
 */
export async function paced(load: PacedLoad): Promise<RequestOutcome> {
  const next = rendered(load.request);
  const all = Array.from({ length: load.connections }, () => new Connection(load.request.url));
  const free = [...all];
  const waiting: number[] = [];
  const latencies: number[] = [];
  const failures: unknown[] = [];
  const start = performance.now();
  const total = Math.min(load.most, Math.floor(load.seconds * load.rate));
  // An overloaded server must not stop the run.
  const patience = start + load.seconds * 2000;

  const serve = (connection: Connection): void => {
    const due = waiting.shift();
    if (due === undefined) {
      free.push(connection);
      return;
    }
    connection.send(next()).then(
      (answer) => {
        if (!answer.ok || !answer.body.includes(load.expect)) failures.push(answer.body.toString());
        latencies.push(performance.now() - due);
        serve(connection);
      },
      (error: unknown) => failures.push(error),
    );
  };
  for (let sent = 0; latencies.length < total && failures.length === 0 && performance.now() < patience;) {
    for (; sent < total && performance.now() >= start + (sent * 1000) / load.rate; sent++) {
      waiting.push(performance.now());
      const connection = free.shift();
      if (connection !== undefined) serve(connection);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seconds = (performance.now() - start) / 1000;
  for (const connection of all) connection.close();
  if (failures.length > 0 && latencies.length < total) throw new Error(`a request failed: ${String(failures[0])}`);
  return { operations: latencies.length, seconds, ...summary(latencies) };
}

function check(right: boolean, expected: string, body: Buffer): void {
  if (!right) throw new Error(`an answer does not contain ${expected}: ${body.subarray(0, 500).toString()}`);
}
