import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server as HttpServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";
import type { Finished } from "./support/parley.ts";

/** `parley card sign`, `verify` and `key` (A2A 1.0 §8.4). */

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-card-"));
  await writeFile(join(folder, "card.json"), JSON.stringify(card("https://agent.example/")));
});
afterEach(() => rm(folder, { recursive: true }));

const card = (url: string): object => ({
  name: "Signed",
  description: "Says little.",
  version: "1.0.0",
  supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: {},
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
});

const run = (args: readonly string[], stdin = ""): Promise<Finished> =>
  parleyHere(["card", ...args], { cwd: folder, stdin });

/** Creates a key; its public set is in `NAME-keys.json`. */
async function makeKey(name: string, ...more: string[]): Promise<void> {
  const { code, out } = await run(["key", `${name}.json`, ...more]);
  expect(code).toBe(0);
  await writeFile(join(folder, `${name}-keys.json`), out);
}

async function signed(name: string, file = "card.json"): Promise<string> {
  const { code, out, err } = await run(["sign", file, "--key", `${name}.json`]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

describe("parley card key", () => {
  test("writes a private key that only its user may read, shows only the public key, and overwrites nothing", async () => {
    const { code, out } = await run(["key", "mine.json"]);
    expect(code).toBe(0);
    expect((await stat(join(folder, "mine.json"))).mode & 0o777).toBe(0o600);
    const { d } = JSON.parse(await readFile(join(folder, "mine.json"), "utf8")) as { d: string };
    expect(out).not.toContain(d);
    expect(JSON.parse(out)).toMatchObject({ keys: [{ kty: "EC", alg: "ES256", use: "sig" }] });
    expect(await run(["key", "mine.json"])).toMatchObject({ code: 1, out: "" });
  });
});

describe("parley card sign and verify", () => {
  test.each(["ES256", "EdDSA", "RS256"])("agree on a card that is signed with %s", async (algorithm) => {
    await makeKey("mine", "--algorithm", algorithm);
    await writeFile(join(folder, "signed.json"), await signed("mine"));
    const { code, out } = await run(["verify", "signed.json", "--keys", "mine-keys.json"]);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`valid {2}key \\S+, ${algorithm}, over the \\w+ form\n✓ A trusted key`));
  });

  test("do not trust a changed card, another key, or a missing signature: 1", async () => {
    await makeKey("mine");
    await makeKey("other");
    const text = await signed("mine");
    await writeFile(join(folder, "signed.json"), text);
    await writeFile(join(folder, "changed.json"), text.replace("agent.example", "other.example"));
    expect(await run(["verify", "changed.json", "--keys", "mine-keys.json"])).toMatchObject({ code: 1 });
    const foreign = await run(["verify", "signed.json", "--keys", "other-keys.json"]);
    expect(foreign.code).toBe(1);
    expect(foreign.out).toContain("✗ No trusted key signed this card.");
    const bare = await run(["verify", "card.json", "--keys", "mine-keys.json"]);
    expect(bare).toMatchObject({ code: 1, out: "✗ The card has no signature.\n" });
  });

  test("each key adds a signature, and one of them is enough", async () => {
    await makeKey("old");
    await makeKey("new");
    await writeFile(join(folder, "once.json"), await signed("old"));
    const twice = await run(["sign", "-", "--key", "new.json"], await signed("old"));
    await writeFile(join(folder, "twice.json"), twice.out);
    for (const keys of ["old-keys.json", "new-keys.json"]) {
      const { code, out } = await run(["verify", "twice.json", "--keys", keys, "--json"]);
      expect(code).toBe(0);
      const { signatures } = JSON.parse(out) as { signatures: { outcome: string }[] };
      expect(new Set(signatures.map(({ outcome }) => outcome))).toEqual(new Set(["valid", "unknown-key"]));
    }
  });

  test.each([
    [["sign", "no.json", "--key", "card.json"], "cannot read"],
    [["sign", "card.json", "--key", "card.json"], "must be a private key"],
    [["sign", "card.json"], "--key"],
    [["verify", "card.json"], "--keys"],
    [["verify", "card.json", "--keys", "card.json"], "must contain a key set"],
    [["verify", "card.json", "--keys", "no.json"], "cannot read"],
  ])("reject %j with the reason", async (args, said) => {
    const { code, out, err } = await run(args);
    expect(code).not.toBe(0);
    expect(out).toBe("");
    expect(err).toContain(said);
  });

  test("do not show a file that is not JSON, because it may be a key", async () => {
    await writeFile(join(folder, "bad.json"), '{"d":"s3cret-of-the-test"');
    const { err } = await run(["sign", "card.json", "--key", "bad.json", "--verbose"]);
    expect(err).not.toContain("s3cret");
  });
});

describe("parley card lint", () => {
  test("reports problems, and exits with 1 if the card violates the specification", async () => {
    await writeFile(join(folder, "bad.json"), JSON.stringify({ ...card("not a url"), version: 1 }));
    const { code, out, err } = await run(["lint", "bad.json"]);
    expect({ code, err }).toEqual({ code: 1, err: "" });
    expect(out).toMatch(/^error {2}supportedInterfaces\[0\]\.url: "not a url" is not an absolute URL$/m);
    expect(out).toMatch(/^error {2}version: /m);
    const json = await run(["lint", "bad.json", "--json"]);
    expect(JSON.parse(json.out)).toMatchObject({ findings: [{ level: "error" }, { level: "error" }] });
  });

  test("lists every problem of a card of 0.3", async () => {
    const bad = { protocolVersion: "0.3.0", url: "https://a.example", name: 1, skills: [{}, {}], capabilities: 1 };
    await writeFile(join(folder, "bad.json"), JSON.stringify(bad));
    const { code, out } = await run(["lint", "bad.json"]);
    expect(code).toBe(1);
    const fields = [...out.matchAll(/^error {2}(.+?): /gm)].map(([, field]) => field);
    expect(new Set(fields)).toEqual(
      new Set(
        ["name", "description", "version", "capabilities", "defaultInputModes", "defaultOutputModes"].concat(
          ["id", "name", "description", "tags"].flatMap((name) => [`skills[0].${name}`, `skills[1].${name}`]),
        ),
      ),
    );
  });

  test("exits with 0 on warnings only", async () => {
    await writeFile(join(folder, "plain.json"), JSON.stringify(card("http://agent.example/")));
    const { code, out } = await run(["lint", "-"], await readFile(join(folder, "plain.json"), "utf8"));
    expect(code).toBe(0);
    expect(out).toMatch(/^warning {2}supportedInterfaces\[0\]\.url: The URL has no TLS/m);
  });
});

describe("parley card verify, for an agent", () => {
  let server: HttpServer;
  let url = "";
  let text = "";
  let keys = "";
  beforeEach(async () => {
    server = createServer((request, response) => {
      const body = request.url === "/keys.json" ? keys : request.url?.startsWith("/.well-known/agent-card") ? text : "";
      response.writeHead(body === "" ? 404 : 200, { "content-type": "application/json" }).end(body);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await makeKey("mine");
    keys = await readFile(join(folder, "mine-keys.json"), "utf8");
    // The signature covers an unknown member, which must be kept.
    await writeFile(join(folder, "served.json"), JSON.stringify({ ...card(url), ofTheFuture: [""] }));
    text = await signed("mine", "served.json");
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  test("reads the served card, and the keys from a file or from the user's URL", async () => {
    for (const place of ["mine-keys.json", `${url}/keys.json`]) {
      expect(await run(["verify", url, "--keys", place])).toMatchObject({ code: 0, err: "" });
    }
    text = text.replace("Says little.", "Says a lot.");
    expect(await run(["verify", url, "--keys", "mine-keys.json"])).toMatchObject({ code: 1 });
  });

  test("verifies even a card that no client could use, and fails on a missing one", async () => {
    await writeFile(
      join(folder, "served.json"),
      JSON.stringify({
        ...card(url),
        supportedInterfaces: [{ url: "ftp://x", protocolBinding: "SOAP", protocolVersion: "9" }],
      }),
    );
    text = await signed("mine", "served.json");
    expect(await run(["verify", url, "--keys", "mine-keys.json"])).toMatchObject({ code: 0 });
    text = "";
    expect(await run(["verify", url, "--keys", "mine-keys.json"])).toMatchObject({ code: 1, out: "" });
  });

  test("does not read a card without an end", async () => {
    text = `{"name":"${"x".repeat(2 << 20)}"}`;
    const { code, out, err } = await run(["verify", url, "--keys", "mine-keys.json"]);
    expect({ code: code !== 0, out }).toEqual({ code: true, out: "" });
    expect(err.length).toBeLessThan(1000);
  });
});
