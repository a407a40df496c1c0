import { Server, type ServerUnaryCall, type ServerWritableStream } from "@grpc/grpc-js";
import type protobuf from "protobufjs";
import { grpcTypes, sendMessagePath, sendStreamingMessagePath } from "../grpc-types.ts";
import { answerText, chunkText, commandOf, type Command } from "./commands.ts";
import { listening } from "./grpc-address.ts";

// The lower bound for gRPC: a grpc-js server with protobufjs, which decodes and encodes the same messages, without checks and
// without a store.

interface Send {
  readonly message: { readonly messageId: string; readonly parts: readonly [{ readonly text: string }] };
}

const taskId = "0199f0a0-0000-7000-8000-000000000000";
const contextId = "0199f0a0-0000-7000-8000-000000000001";
const agent = 2;
const completed = 3;
const reply = { message: { messageId: contextId, role: agent, parts: [{ text: answerText }], contextId } };

function commandIn({ message }: Send): Command {
  return commandOf(message.parts[0].text);
}

async function stream(call: ServerWritableStream<Send, object>): Promise<void> {
  const { count } = commandIn(call.request);
  for (let number = 0; number < count; number++) {
    const artifact = { artifactId: "a1", parts: [{ text: chunkText(number) }] };
    const more = call.write({ artifactUpdate: { taskId, contextId, artifact, append: number > 0 } });
    if (!more) await new Promise((resolve) => call.once("drain", resolve));
  }
  const timestamp = { seconds: 1_767_225_600, nanos: 0 };
  call.write({ statusUpdate: { taskId, contextId, status: { state: completed, timestamp } } });
  call.end();
}

/** Resolves with its address. */
export function rawGrpc(): Promise<string> {
  const { request, response, event } = grpcTypes();
  const server = new Server();
  server.addService(
    {
      sendMessage: method(sendMessagePath, request, response, false),
      sendStreamingMessage: method(sendStreamingMessagePath, request, event, true),
    },
    {
      sendMessage(call: ServerUnaryCall<Send, object>, answer: (error: null, value: object) => void) {
        const { name } = commandIn(call.request);
        if (name !== "reply") throw new Error(`the bare server has no ${name}`);
        answer(null, reply);
      },
      sendStreamingMessage: (call: ServerWritableStream<Send, object>) => void stream(call),
    },
  );
  return listening(server);
}

function method(path: string, input: protobuf.Type, output: protobuf.Type, streams: boolean) {
  return {
    path,
    requestStream: false,
    responseStream: streams,
    requestSerialize: (value: object) => input.encode(value).finish() as Buffer,
    requestDeserialize: (bytes: Buffer) => input.decode(bytes) as unknown as Send,
    responseSerialize: (value: object) => output.encode(value).finish() as Buffer,
    responseDeserialize: (bytes: Buffer) => output.decode(bytes),
  };
}
