import { Client, credentials, Metadata, type CallOptions, type ServiceError, type StatusObject } from "@grpc/grpc-js";
import { messageOf, oracleBytes, oracleJson, registry } from "./oracle.ts";

export interface Answer {
  readonly value: unknown;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
}

/** The client of grpc-js with the message library of buf, without code of ours. Values are ProtoJSON. */
export class GrpcJs implements Disposable {
  readonly client: Client;

  /** @param authority - The host that calls name. Default: that of the address. */
  constructor(address: string, authority?: string) {
    const options = authority === undefined ? {} : { "grpc.default_authority": authority };
    this.client = new Client(address, credentials.createInsecure(), options);
  }

  unary(
    path: string,
    value: unknown,
    metadata: Record<string, string> = {},
    options: CallOptions = {},
  ): Promise<Answer> {
    const { write, read } = codecOf(path);
    return new Promise((resolve, reject) => {
      let headers: Record<string, unknown> = {};
      let trailers: Record<string, unknown> = {};
      const call = this.client.makeUnaryRequest(
        path,
        write,
        read,
        value,
        metadataOf(metadata),
        options,
        (error, answer) => {
          if (error !== null) reject(error);
          else setImmediate(() => resolve({ value: answer, headers, trailers }));
        },
      );
      call.on("metadata", (each: Metadata) => (headers = each.getMap()));
      call.on("status", (each: StatusObject) => (trailers = each.metadata.getMap()));
    });
  }

  stream(path: string, value: unknown, metadata: Record<string, string> = {}, options: CallOptions = {}) {
    const { write, read } = codecOf(path);
    return this.client.makeServerStreamRequest<unknown, unknown>(
      path,
      write,
      read,
      value,
      metadataOf(metadata),
      options,
    );
  }

  async all(path: string, value: unknown, metadata: Record<string, string> = {}): Promise<unknown[]> {
    const values: unknown[] = [];
    for await (const each of this.stream(path, value, metadata)) values.push(each);
    return values;
  }

  bidi(path: string) {
    const { write, read } = codecOf(path);
    return this.client.makeBidiStreamRequest<unknown, unknown>(path, write, read, new Metadata());
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

function codecOf(path: string) {
  const [, service = "", name] = path.split("/");
  const method = registry.getService(service)?.methods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`no method ${path}`);
  return {
    write: (value: unknown) => Buffer.from(oracleBytes(messageOf(method.input.typeName), value)),
    read: (bytes: Buffer) => oracleJson(messageOf(method.output.typeName), bytes),
  };
}

function metadataOf(values: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(values)) metadata.set(name, value);
  return metadata;
}

/** Status, text and details of an error. */
export function statusOf(error: unknown): {
  code: number;
  details: string;
  trailers: Record<string, unknown>;
  rpc: unknown;
} {
  const { code, details, metadata } = error as ServiceError;
  const [binary] = metadata.get("grpc-status-details-bin");
  const rpc = binary === undefined ? undefined : oracleJson(messageOf("google.rpc.Status"), binary as Buffer);
  return { code, details, trailers: metadata.getMap(), rpc };
}
