import { jsonRpcBinding, restBinding, type ServerBinding } from "@parley/a2a";
import type { AnyPathBinding } from "@parley/a2a/transport";
import { optional } from "./optional.ts";

/** A binding on a port of its own. It knows its requests by their headers, as gRPC does, since it shares no paths with others. */
export interface BindingOnPort {
  /** The binding. */
  readonly binding: AnyPathBinding;
  /** 0 takes any free port. */
  readonly port: number;
}

export const grpcName = "@parley/grpc";

/** JSON-RPC, REST and, where `@parley/grpc` is installed, gRPC. */
export async function defaultBindings(): Promise<readonly ServerBinding[]> {
  const grpc = await optional(grpcName, () => import("@parley/grpc"));
  return [jsonRpcBinding(), restBinding(), ...(grpc === undefined ? [] : [grpc.grpcBinding()])];
}

export function hasOwnPort(binding: ServerBinding | BindingOnPort): binding is BindingOnPort {
  return "port" in binding;
}

/** What cards say of a binding that is answered on another port. */
export function elsewhere(binding: AnyPathBinding, port: number): ServerBinding {
  return {
    name: binding.name,
    interfaces: ({ url, ...agent }, codec) => binding.interfaces({ ...agent, url: withPort(url, port) }, codec),
  };
}

function withPort(text: string, port: number): string {
  const url = new URL(text);
  url.port = String(port);
  return url.href.replace(/\/$/, "");
}
