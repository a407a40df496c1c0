import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { grpcTypes, sendMessagePath, sendStreamingMessagePath } from "../grpc-types.ts";
import { answerParent } from "../ipc.ts";
import { idMark, messageIds } from "./http.ts";
import type { RequestOutcome } from "./requests.ts";
import { summary } from "./latencies.ts";

// The load program for gRPC, with the client of grpc-js. It handles requests and responses as bytes, to use as little CPU as
// possible.

export interface GrpcLoad {
  readonly address: string;
  /** The message to send. */
  readonly text: string;
}

export interface GrpcCallsLoad extends GrpcLoad {
  /** A text that every correct response contains. */
  readonly expect: string;
  readonly connections: number;
  /** The round ends after this many seconds or calls, whichever comes first. */
  readonly seconds: number;
  readonly most: number;
}

export interface GrpcStreamOutcome {
  readonly chunks: number;
  /** The total size of the chunks in bytes. */
  readonly bytes: number;
  readonly seconds: number;
}

const { request } = grpcTypes();
const nextId = messageIds();
const metadata = new Metadata();
metadata.set("a2a-version", "1.0");

/** Returns a function that creates the bytes of the message, each time with a new id. */
function rendered(text: string): () => Buffer {
  const user = 1;
  const value = { message: { messageId: idMark, role: user, parts: [{ text }] } };
  const bytes = Buffer.from(request.encode(value).finish());
  const at = bytes.indexOf(idMark);
  return () => {
    const copy = Buffer.from(bytes);
    copy.write(nextId(), at, "latin1");
    return copy;
  };
}

const same = (bytes: Buffer): Buffer => bytes;

function connect(address: string): Client {
  // Otherwise all clients of an address would share one connection.
  return new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
}

function ready(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + 5_000, (error) => {
      if (error === undefined) resolve();
      else reject(error);
    });
  });
}

/** Closed loop: each connection sends its next call after the response to the last one. */
async function calls(load: GrpcCallsLoad): Promise<RequestOutcome> {
  const next = rendered(load.text);
  const clients = Array.from({ length: load.connections }, () => connect(load.address));
  await Promise.all(clients.map(ready));
  const call = (client: Client): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(sendMessagePath, same, same, next(), metadata, (error, answer) => {
        if (answer !== undefined && error === null) resolve(answer);
        else reject(error ?? new Error("the call has no answer"));
      });
    });
  const latencies: number[] = [];
  const start = performance.now();
  const end = start + load.seconds * 1000;
  const drive = async (client: Client): Promise<void> => {
    for (let now = performance.now(); now < end && latencies.length < load.most;) {
      const answer = await call(client);
      if (!answer.includes(load.expect))
        throw new Error(`an answer does not contain ${load.expect}: ${answer.toString()}`);
      const then = now;
      now = performance.now();
      latencies.push(now - then);
    }
  };
  try {
    await Promise.all(clients.map(drive));
  } finally {
    for (const client of clients) client.close();
  }
  return { operations: latencies.length, seconds: (performance.now() - start) / 1000, ...summary(latencies) };
}

/** The tag of the StreamResponse field that holds a chunk. */
const artifactUpdate = 0x22;

/** Reads one stream to its end. */
async function stream({ address, text }: GrpcLoad): Promise<GrpcStreamOutcome> {
  const client = connect(address);
  try {
    await ready(client);
    const start = performance.now();
    const call = client.makeServerStreamRequest(sendStreamingMessagePath, same, same, rendered(text)(), metadata);
    let chunks = 0;
    let bytes = 0;
    call.on("data", (message: Buffer) => {
      if (message[0] !== artifactUpdate) return;
      chunks += 1;
      bytes += message.length;
    });
    await new Promise<void>((resolve, reject) => call.on("end", resolve).on("error", reject));
    return { chunks, bytes, seconds: (performance.now() - start) / 1000 };
  } finally {
    client.close();
  }
}

answerParent({ calls, stream });
