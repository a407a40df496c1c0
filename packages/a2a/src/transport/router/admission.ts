import { isLoopback } from "../../base/index.ts";
import { A2AError, invalidParams, type AgentCard } from "../../model/index.ts";
import type { Admission } from "../server/binding.ts";

/**
 * Allows requests to the host names of a server, and refuses all others. This stops DNS rebinding: a browser lets a page of
 * `evil.example` read what is served under that name, and the name may resolve to this machine a moment later. The header
 * `Host` still has the name that the page used. The header `Origin` shows requests of pages that cannot read the answer but
 * could start something.
 *
 * @param allowed - Host names beside those of loopback, with or without a port. Ports are not compared. `"*"` allows any.
 * @param origins - Origins of the pages that may call (CORS).
 * @throws A2AError `InvalidParams` for an element that is not a host name.
 */
export function admission(allowed: readonly string[], origins: "*" | readonly string[]): Admission | undefined {
  if (allowed.includes("*")) return undefined;
  const names = new Set(
    allowed.map((name) => {
      const host = hostOf(name);
      if (host !== undefined) return host;
      const description = `has ${JSON.stringify(name)}, which is no host such as "agents.example.com"`;
      throw invalidParams(
        [{ field: "allowedHosts", description }],
        `This cannot be served: allowedHosts ${description}`,
      );
    }),
  );
  const pages = new Set(origins === "*" ? [] : origins);
  const isOurs = (host: string | undefined): boolean => host !== undefined && (isLoopback(host) || names.has(host));
  // The last host name that was allowed: most requests name the same one.
  let known: string | undefined;
  return (request) => {
    const host = request.header("host");
    if (host !== undefined && host !== known) {
      if (!isOurs(hostOf(host))) throw refuse(`the host ${quote(host)}`);
      known = host;
    }
    const origin = request.header("origin");
    if (origin === undefined || origins === "*" || pages.has(origin)) return;
    if (!isOurs(URL.canParse(origin) ? nameOf(new URL(origin)) : undefined)) throw refuse(`pages of ${quote(origin)}`);
  };
}

/**
 * The hosts in the addresses of a card. An address is a URL, or `agents.example.com:443` for gRPC. Other addresses are left
 * out, because a custom binding may have addresses of another kind.
 */
export function hostsOf({ supportedInterfaces }: Pick<AgentCard, "supportedInterfaces">): readonly string[] {
  const authorities = supportedInterfaces.map(
    ({ url }) => url.replace(/^[a-z][\w+.-]*:(?:\/\/|(?=\D))/i, "").split(/[/?#]/, 1)[0],
  );
  return authorities.filter((authority) => hostOf(authority ?? "") !== undefined) as string[];
}

/** The name in `name`, `name:port` or `[::1]:port`. */
function hostOf(text: string): string | undefined {
  if (/[/?#@\\\s]/.test(text) || !URL.canParse(`http://${text}`)) return undefined;
  return nameOf(new URL(`http://${text}`));
}

function nameOf({ hostname }: URL): string | undefined {
  return hostname.replace(/\.$/, "") || undefined;
}

function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

function refuse(what: string): A2AError {
  return new A2AError(
    "PermissionDenied",
    `This server does not answer ${what}: \`allowedHosts\` names the hosts that it goes by, \`cors\` the pages that may call`,
  );
}
