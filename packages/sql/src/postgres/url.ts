import { isIP } from "node:net";
import { A2AError } from "@parley/a2a/internal/model/index";

/** What a URL of a database says about TLS. */
export interface Target {
  /** The URL as `pg` takes it. */
  readonly connectionString: string;
  /** Whether TLS is only tried: `sslmode=prefer`, and a URL that says nothing and names another machine. */
  readonly prefersTls: boolean;
}

/**
 * Reads `sslmode` as PostgreSQL's own clients do (libpq, §34.19): `disable`, `prefer`, `require`, `verify-ca`, `verify-full`. `pg` 8 has
 * meanings of its own, and no fallback for `prefer`. A URL without `sslmode` has `prefer`, or `disable` where the server is on this
 * machine.
 *
 * @throws A2AError `Unavailable` without the URL, which has the password.
 */
export function readUrl(url: string): Target {
  const parsed = parse(url);
  const { searchParams } = parsed;
  refuseUnknown(searchParams);
  // What asks for TLS of its own. Other settings of it say nothing about whether there is any.
  const own = searchParams.has("ssl") || searchParams.get("sslnegotiation") === "direct";
  const mode = searchParams.get("sslmode") ?? (own ? undefined : isLocal(parsed) ? "disable" : "prefer");
  if (mode === "allow") throw refused("sslmode=allow is not supported. `prefer` is");
  // A name of `pg`.
  if (mode !== undefined && mode !== "no-verify") {
    if (!modes.has(mode)) throw refused("its sslmode is none of PostgreSQL's");
    searchParams.set("sslmode", mode);
    searchParams.set("uselibpqcompat", "true");
    // The certificates of the system are those of Node.
    if (searchParams.get("sslrootcert") === "system") {
      searchParams.delete("sslrootcert");
      searchParams.set("sslmode", "verify-full");
    }
  }
  return { connectionString: parsed.href, prefersTls: mode === "prefer" };
}

/** The same without TLS. */
export function withoutTls(url: string): string {
  const parsed = parse(url);
  parsed.searchParams.set("sslmode", "disable");
  return parsed.href;
}

/**
 * Settings of PostgreSQL's own clients that `pg` takes no notice of: a program would reach another server than its URL says.
 */
function refuseUnknown(searchParams: URLSearchParams): void {
  for (const name of ["target_session_attrs", "hostaddr", "load_balance_hosts", "service"]) {
    if (searchParams.has(name)) throw refused(`pg does not know ${name}`);
  }
}

const modes: ReadonlySet<string> = new Set(["disable", "prefer", "require", "verify-ca", "verify-full"]);

function parse(url: string): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
    // pg decodes them, and says nothing of the URL where it cannot.
    for (const part of [parsed.hostname, parsed.username, parsed.password, parsed.pathname]) decodeURIComponent(part);
  } catch {
    throw refused("it is no URL");
  }
  if (parsed.host.includes(",") || parsed.searchParams.get("host")?.includes(","))
    throw refused("it has several hosts");
  if (!/^postgres(?:ql)?:$/.test(parsed.protocol)) throw refused("it must begin with postgres:// or postgresql://");
  return parsed;
}

function refused(reason: string): A2AError {
  return new A2AError("Unavailable", `The URL of the database cannot be used: ${reason}`);
}

/** A Unix socket, or an address of this machine. */
function isLocal({ hostname, searchParams }: URL): boolean {
  const host = searchParams.get("host") ?? decodeURIComponent(hostname);
  if (host === "" || host.startsWith("/") || host === "localhost") return true;
  const address = host.replace(/^\[(.*)\]$/, "$1");
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}
