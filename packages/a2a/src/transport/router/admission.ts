import { isLoopback } from "../../base/index.ts";
import { A2AError, invalidParams, type AgentCard } from "../../model/index.ts";
import type { Admission } from "../server/host.ts";

/**
 * Allows requests to the hosts that a server goes by, and refuses all others (DNS rebinding). A browser lets a page of
 * `evil.example` read what that name answers, and the name may resolve to this machine from one moment to the next: then
 * `Host` still says what the page asked for. `Origin` shows pages that cannot read the answer, but can have something done.
 *
 * @param allowed - Names beside those of loopback, with a port or without: ports are not compared. `"*"`: any.
 * @param origins - Origins of pages that may call (CORS).
 * @throws A2AError `InvalidParams` for what is no name of a host.
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
  // Most requests name the same one.
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
 * The hosts in the addresses of a card: URLs, or `agents.example.com:443` as gRPC has it. What is none is left out, since a
 * binding may have addresses of another kind.
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
