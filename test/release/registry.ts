import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

/** The part of npm's publish request that the registry uses. */
interface Published {
  readonly name: string;
  readonly versions: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

/** An in-memory registry of npm packages, on its own port. */
export interface Registry {
  readonly url: string;
  /** The `name@version` of each published package, in order. */
  readonly published: readonly string[];
  /** Returns the published manifest of a package. */
  manifest(id: string): Readonly<Record<string, unknown>>;
  /** Makes the registry answer 500 when this package is published, until the next call without a name. */
  breakAt(name?: string): void;
  /** Environment variables with which npm uses this registry, and no other registry for Parley's packages. */
  readonly env: NodeJS.ProcessEnv;
  /** Stops the registry. `env` still points here, so npm uses no other registry. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Writes an npmrc with the user's settings and the registry for `@parley`. Variables would not work: a shell drops variables with such names. */
function configFor(url: string): string {
  const folder = mkdtempSync(join(tmpdir(), "parley-npmrc-"));
  const theirs = process.env["npm_config_userconfig"] ?? join(homedir(), ".npmrc");
  const before = existsSync(theirs) ? readFileSync(theirs, "utf8") : "";
  const file = join(folder, "npmrc");
  const ours = `@parley:registry=${url}\n${url.slice("http:".length)}:_authToken=of-a-test\n`;
  writeFileSync(file, `${before}\n${ours}`, { mode: 0o600 });
  return file;
}

export async function startRegistry(): Promise<Registry> {
  const tarballs = new Map<string, Buffer>();
  const manifests = new Map<string, Readonly<Record<string, unknown>>>();
  let broken: string | undefined;
  let url = "";

  function publish({ name, versions, _attachments: files }: Published): number {
    if (name === broken) return 500;
    const [version = ""] = Object.keys(versions);
    const [file] = Object.values(files);
    const id = `${name}@${version}`;
    if (file === undefined) return 400;
    if (manifests.has(id)) return 409;
    const bytes = Buffer.from(file.data, "base64");
    const digest = (kind: string, form: "hex" | "base64"): string => createHash(kind).update(bytes).digest(form);
    const dist = {
      tarball: `${url}-/${encodeURIComponent(id)}.tgz`,
      integrity: `sha512-${digest("sha512", "base64")}`,
      shasum: digest("sha1", "hex"),
    };
    tarballs.set(`/-/${encodeURIComponent(id)}.tgz`, bytes);
    manifests.set(id, { ...versions[version], dist });
    return 201;
  }

  function describe(name: string): object | undefined {
    const found = [...manifests].filter(([id]) => id.startsWith(`${name}@`)).map(([, manifest]) => manifest);
    const versions = Object.fromEntries(found.map((manifest) => [String(manifest["version"]), manifest]));
    const latest = Object.keys(versions).at(-1);
    return latest === undefined ? undefined : { name, "dist-tags": { latest }, versions };
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const json = (status: number, body: object): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "PUT") return json(publish(JSON.parse(await bodyOf(request)) as Published), {});
    const tarball = tarballs.get(path);
    if (tarball !== undefined) return void response.writeHead(200).end(tarball);
    const document = describe(decodeURIComponent(path.slice(1)));
    return document === undefined ? json(404, { error: "Not found" }) : json(200, document);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  url = `http://${host}/`;
  const config = configFor(url);

  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };

  return {
    url,
    get published() {
      return [...manifests.keys()];
    },
    manifest: (id) => manifests.get(id) ?? {},
    breakAt: (name) => void (broken = name),
    env: { npm_config_userconfig: config },
    stop,
    async close() {
      await stop();
      rmSync(join(config, ".."), { recursive: true });
    },
  };
}
