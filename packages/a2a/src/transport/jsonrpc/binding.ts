import { speaksJsonRpc } from "../../wire/bindings.ts";
import type { ClaimedPath, ServerBinding } from "../server/binding.ts";
import { interfaceAt, tenantPath } from "../server/paths.ts";
import { speakers } from "../server/speakers.ts";
import { jsonRpcEndpoint } from "./handler.ts";

const name = "JSONRPC";

/**
 * JSON-RPC at a server (A2A 1.0 §9): every method is a POST to one address. To versions whose requests cannot name a tenant
 * each tenant has an address of its own, below that of all.
 */
export function jsonRpcBinding(): ServerBinding {
  return {
    name,
    interfaces: (agent, codec) => (speaksJsonRpc(codec) ? [interfaceAt(agent, codec)] : []),
    http: {
      claim({ path, tenants }, codecs) {
        const paths: ClaimedPath[] = [{ path }];
        if (codecs.some((codec) => codec.tenantInPath === true && speaksJsonRpc(codec))) {
          for (const tenant of tenants)
            if (tenant !== undefined) paths.push({ path: tenantPath(path, tenant), tenant });
        }
        return { paths };
      },
      open: (host) => jsonRpcEndpoint(host, speakers(name, host.codecs, speaksJsonRpc)),
    },
  };
}
