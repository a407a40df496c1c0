import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";

// The A2A messages for protobufjs, used by the load program and the echo server of grpc-js.

export interface GrpcTypes {
  readonly request: protobuf.Type;
  readonly response: protobuf.Type;
  readonly event: protobuf.Type;
}

export function grpcTypes(): GrpcTypes {
  const root = new protobuf.Root();
  root.resolvePath = (_from, path) =>
    path.startsWith("google/protobuf/")
      ? join(folderOf("protobufjs"), path)
      : join(folderOf("@parley/grpc"), "proto", path);
  root.loadSync("lf/a2a/v1/a2a.proto");
  const type = (name: string): protobuf.Type => root.lookupType(`lf.a2a.v1.${name}`).setup();
  return { request: type("SendMessageRequest"), response: type("SendMessageResponse"), event: type("StreamResponse") };
}

function folderOf(dependency: string): string {
  return dirname(fileURLToPath(import.meta.resolve(`${dependency}/package.json`)));
}

const service = "/lf.a2a.v1.A2AService/";

export const sendMessagePath: string = `${service}SendMessage`;
export const sendStreamingMessagePath: string = `${service}SendStreamingMessage`;
