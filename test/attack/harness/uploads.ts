import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:http2";
import type { Writable } from "node:stream";
import { mebi } from "./bodies.ts";
import { grpcCall } from "./grpc.ts";
import { mebibytes } from "../processes/agents.ts";

/* Sends messages with one large file. Generates each message while it is sent. */

/** A message to send. */
export interface Upload {
  /** The size of the file in MiB. */
  readonly size: number;
  /** The text of the message. */
  readonly text?: string;
  /** Called with the size of the part of the file that has been written, in MiB. The function may wait, or throw to abort the request. */
  readonly onWritten?: (written: number) => Promise<void> | void;
}

async function write(to: Writable, bytes: string | Uint8Array): Promise<void> {
  if (!to.write(bytes)) await once(to, "drain");
}

/** Yields three MiB at a time, which are whole groups of base64. */
async function* base64(size: number, onWritten: Upload["onWritten"]): AsyncGenerator<string> {
  let group: Uint8Array[] = [];
  let at = 0;
  for await (const piece of mebibytes(size)) {
    group.push(piece);
    at += 1;
    if (group.length < 3 && at < size) continue;
    yield Buffer.concat(group).toString("base64");
    group = [];
    await onWritten?.(at);
  }
}

let ids = 0;
function messageOf(text = "Look"): { messageId: string; role: "ROLE_USER"; parts: { text: string }[] } {
  ids += 1;
  return { messageId: `upload${ids}`, role: "ROLE_USER", parts: [{ text }] };
}

/** Sends a message over JSON-RPC or REST. Resolves to the text of the response. */
export async function upload(url: string, binding: "JSONRPC" | "HTTP+JSON", options: Upload): Promise<string> {
  const { size, text, onWritten } = options;
  const message = { ...messageOf(text), parts: [{ text: text ?? "Look" }, { raw: "@", filename: "large.bin" }] };
  const call =
    binding === "JSONRPC" ? { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } } : { message };
  const [before = "", after = ""] = JSON.stringify(call).split("@");
  const length = before.length + 4 * Math.ceil((size * mebi) / 3) + after.length;
  const headers = { "a2a-version": "1.0", "content-type": "application/json", "content-length": length };
  const sent = request(binding === "JSONRPC" ? url : `${url}/message:send`, { method: "POST", headers });
  const answer = new Promise<string>((resolve, reject) => {
    sent.on("error", reject).on("response", (response) => {
      let got = "";
      response.setEncoding("utf8").on("data", (piece: string) => (got += piece));
      response.on("end", () => resolve(got)).on("error", reject);
    });
  });
  answer.catch(() => {});
  try {
    await write(sent, before);
    for await (const piece of base64(size, onWritten)) await write(sent, piece);
    sent.end(after);
  } catch (error) {
    sent.destroy();
    throw error;
  }
  return answer;
}

/** Returns the start of a length-delimited protobuf field, before its content. */
function field(number: number, length: number): Buffer {
  const bytes: number[] = [(number << 3) | 2];
  let left = length;
  for (; left >= 0x80; left = Math.floor(left / 128)) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}

/** Sends a message over gRPC to a tenant's agent. Resolves to the bytes of the response as text. */
export async function uploadByGrpc(url: string, tenant: string, { size, text, onWritten }: Upload): Promise<string> {
  const { path, body } = grpcCall("SendMessage", { tenant, message: messageOf(text) });
  const name = Buffer.from("large.bin");
  const raw = field(2, size * mebi);
  const named = Buffer.concat([field(6, name.length), name, raw]);
  const part = Buffer.concat([field(5, named.length + size * mebi), named]);
  // If a message field occurs twice, Protobuf merges the two values, and joins their lists.
  const message = Buffer.concat([body.subarray(5), field(2, part.length + size * mebi), part]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length + size * mebi, 1);
  const session = connect(url);
  session.on("error", () => {});
  try {
    const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
    const stream = session.request(headers);
    const answer = (async () => {
      let got = "";
      for await (const piece of stream) got += (piece as Buffer).toString("latin1");
      return got;
    })();
    answer.catch(() => {});
    await write(stream, Buffer.concat([head, message]));
    let written = 0;
    for await (const piece of mebibytes(size)) {
      await write(stream, piece);
      await onWritten?.((written += 1));
    }
    stream.end();
    return await answer;
  } finally {
    session.destroy();
  }
}
