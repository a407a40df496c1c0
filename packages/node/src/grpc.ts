import { createRequire } from "node:module";
import type { AnyPathBinding, ServerBinding } from "@parley/a2a/transport";
import { optional } from "./optional.ts";

/** Where gRPC is spoken, and what cards say of it. */
export interface GrpcServeOptions {
  /** What cards say: `agents.example.com:443`. Default: host and port of `publicUrl`, with the `port` from here if there is one. */
  readonly url?: string;
  /** A port for gRPC alone; 0 takes any free one. Default: that of everything else. */
  readonly port?: number;
}

export const grpcName = "@parley/grpc";

/**
 * The binding of gRPC, where it is installed and not refused.
 *
 * @throws Error when it is asked for and not installed.
 */
export async function grpcOf(option: GrpcServeOptions | false | undefined): Promise<AnyPathBinding | undefined> {
  if (option === false || (option === undefined && !isInstalled())) return undefined;
  const grpc = await optional(grpcName, () => import("@parley/grpc"));
  if (grpc === undefined) throw new Error(`To serve gRPC, install ${grpcName}`);
  return grpc.grpcBinding({ ...(option?.url !== undefined && { url: option.url }) });
}

/** The binding as cards list it at an address; `answers`: whether it is served on the port of all others. */
export function grpcAt(binding: AnyPathBinding, url: string, answers: boolean): ServerBinding {
  return {
    ...(answers && binding),
    name: binding.name,
    interfaces: (agent, codec) => binding.interfaces(agent, codec).map((each) => ({ ...each, url })),
  };
}

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(`${grpcName}/package.json`);
    return true;
  } catch {
    return false;
  }
}

/** Host and port, which is how gRPC names an address: without a scheme. */
export function grpcAddress(publicUrl: string, port: number | undefined): string {
  // What it is instead is said in the words of the handler.
  if (!URL.canParse(publicUrl)) return "";
  const { hostname, port: own, protocol } = new URL(publicUrl);
  return `${hostname}:${port ?? (own === "" ? (protocol === "https:" ? 443 : 80) : own)}`;
}
