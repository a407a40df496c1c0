import { mkdtemp, readdir, rm, symlink, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { get } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { generate } from "selfsigned";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UsageError } from "../src/errors.ts";
import { run } from "../src/program.ts";
import { userToken } from "../../../test/identity/logins.ts";
import { startProvider } from "../../../test/identity/provider.ts";
import { parseToken } from "../src/callers.ts";
import { parleyHere } from "./support/in-process.ts";
import { recordedIo, type RecordedIo } from "./support/io.ts";
import { parley, start, type Running } from "./support/parley.ts";

/**
 * `parley serve`. Tests of the process, its signals and streams, and of loading TypeScript start the binary. The others serve in this
 * process.
 */

const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

let folder = "";
const servers: Running[] = [];
const here: ServingHere[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-serve-"));
});
afterEach(async () => {
  for (const { child, done } of servers.splice(0)) {
    child.kill("SIGTERM");
    await done;
  }
  for (const { stop } of here.splice(0)) await stop();
  await rm(folder, { recursive: true });
});

/** Starts `parley serve` and returns the URLs that it prints. */
async function serving(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ running: Running; urls: readonly string[] }> {
  const running = start(["serve", ...args, "--port", "0"], { cwd: folder, env });
  servers.push(running);
  await running.until("out", / is ready at .*\n$/);
  const [text] = await running.until("out", /[^]*/);
  return { running, urls: [...text.matchAll(/ is ready at (\S+)/g)].map((found) => found[1] ?? "") };
}

interface ServingHere {
  readonly recorded: RecordedIo;
  readonly urls: readonly string[];
  /** Sends the signal to stop, and waits for the end. */
  stop(): Promise<number>;
}

/** The same in this process. */
async function servingHere(
  args: readonly string[],
  env: Record<string, string> = {},
  terminal = false,
): Promise<ServingHere> {
  const environment = { XDG_CONFIG_HOME: "/nowhere", PARLEY_KEYCHAIN: "off", ...env };
  const recorded = recordedIo({ env: environment, cwd: folder, terminal });
  let ended: number | undefined;
  const done = run(["serve", ...args, "--port", "0"], recorded.io).then((code) => (ended = code));
  await expect.poll(() => ended !== undefined || / is ready at .*\n$/.test(recorded.out()), { interval: 5 }).toBe(true);
  expect(ended, recorded.err()).toBeUndefined();
  const stop = (): Promise<number> => {
    recorded.interrupt("SIGTERM");
    return done;
  };
  const serving = {
    recorded,
    urls: [...recorded.out().matchAll(/ is ready at (\S+)/g)].map(([, url = ""]) => url),
    stop,
  };
  here.push(serving);
  return serving;
}

/** The bindings on the card of an agent. */
async function bindingsAt(url = ""): Promise<ReadonlySet<string>> {
  const { card } = await connect(url);
  return new Set(card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding));
}

describe("parley serve", () => {
  test("has gRPC on the card only with --grpc, including the project that parley init writes", async () => {
    const template = fileURLToPath(new URL("../templates/agent/agent.ts", import.meta.url));
    const { urls } = await servingHere([template, "--store", "memory"]);
    expect(await bindingsAt(urls[0])).toEqual(new Set(["JSONRPC", "HTTP+JSON"]));
    const asked = await servingHere([template, "--store", "memory", "--grpc"]);
    expect(await bindingsAt(asked.urls[0])).toEqual(new Set(["JSONRPC", "HTTP+JSON", "GRPC"]));
    expect(await parleyHere(["send", asked.urls[0] ?? "", "roll 2d6", "--binding", "GRPC"])).toMatchObject({ code: 0 });
  });

  test("serves an agent written in TypeScript, and stops at SIGTERM", async () => {
    const { running, urls } = await serving([fixture("agent.ts"), "--store", "memory"]);
    const [url = ""] = urls;
    expect(await parleyHere(["send", url, "hello"])).toMatchObject({ code: 0, out: "You said: hello\n" });
    running.child.kill("SIGTERM");
    const { code, out, err } = await running.done;
    expect({ code, out }).toEqual({ code: 0, out: `Scripted is ready at ${url}\n` });
    expect(JSON.parse(err)).toMatchObject({ level: "info", message: "Stopping; press Ctrl-C again to stop at once." });
  });

  test("serves in several processes, which are announced once, end with it, and require a shared database", async () => {
    const { running, urls } = await serving([fixture("agent.ts"), "--processes", "2"]);
    expect(urls).toHaveLength(1);
    const [url = ""] = urls;
    const sent = await Promise.all([1, 2, 3].map(() => parleyHere(["send", url, "hello"])));
    for (const each of sent) expect(each).toMatchObject({ code: 0, out: "You said: hello\n" });
    running.child.kill("SIGTERM");
    const { code, out, err } = await running.done;
    expect({ code, out }).toEqual({ code: 0, out: `Scripted is ready at ${url}\n` });
    expect(
      err
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { message: string }).message),
    ).toEqual(["Stopping; press Ctrl-C again to stop at once."]);
    const refused = await parleyHere(["serve", fixture("agent.ts"), "--processes", "2", "--store", "memory"]);
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain("--processes needs a shared database");
  });

  test("logs the details that callers do not see to standard error, in the requested format and level", async () => {
    const texts = await Promise.all(
      [[], ["--log-format", "text"], ["--log-level", "off"]].map(async (options) => {
        const { recorded, urls, stop } = await servingHere([fixture("agent.ts"), "--store", "memory", ...options]);
        const sent = await parleyHere(["send", urls[0] ?? "", "throw"]);
        expect(sent.code).toBe(1);
        expect(sent.out + sent.err).not.toContain("secret");
        await stop();
        return recorded.err();
      }),
    );
    const [json = "", text = "", off] = texts;
    const lines = json.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: "error", message: "A task failed", cause: { stack: expect.stringContaining("fixtures/agent.ts") } },
      { level: "info" },
    ]);
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d error \/ \S{8} A task failed .*\n {2}Error: secret of the database\n {6}at .*fixtures\/agent\.ts/,
    );
    expect(text).toMatch(/\nStopping; press Ctrl-C again to stop at once\.\n$/);
    expect(off).toBe("Stopping; press Ctrl-C again to stop at once.\n");
  });

  test("continues when nothing reads its standard error", async () => {
    const { running, urls } = await serving([fixture("agent.ts"), "--store", "memory"]);
    running.child.stderr.destroy();
    for (const words of ["throw", "throw"]) expect((await parleyHere(["send", urls[0] ?? "", words])).code).toBe(1);
    expect(await parleyHere(["send", urls[0] ?? "", "hello"])).toMatchObject({ code: 0, out: "You said: hello\n" });
    running.child.kill("SIGTERM");
    expect((await running.done).code).toBe(0);
  });

  test("serves a list of mounts, each at its path", async () => {
    const { urls } = await servingHere([fixture("mounts.ts"), "--store", "memory"]);
    expect(urls.map((url) => new URL(url).pathname)).toEqual(["/first", "/second"]);
    for (const [i, name] of ["Scripted", "Other"].entries()) {
      const { out } = await parleyHere(["card", urls[i] ?? "", "--json"]);
      expect(JSON.parse(out)).toMatchObject({ name });
    }
  });

  test("--json prints only the URLs, in one document", async () => {
    const running = start(["serve", fixture("agent.ts"), "--port", "0", "--store", "memory", "--json"]);
    servers.push(running);
    const [line] = await running.until("out", /^.*\n/);
    const { url, port, agents } = JSON.parse(line) as { url: string; port: number; agents: unknown };
    expect(agents).toEqual([{ name: "Scripted", url }]);
    expect(new URL(url).port).toBe(String(port));
  });

  test("stores tasks in a file, where the next server finds them", async () => {
    const first = await serving([fixture("agent.ts")]);
    const { out } = await parleyHere(["send", first.urls[0] ?? "", "stream", "--json"]);
    const { task } = JSON.parse(out.split("\n")[0] ?? "") as { task: { id: string } };
    first.running.child.kill("SIGINT");
    expect((await first.running.done).code).toBe(0);
    expect(await readdir(join(folder, ".parley"))).toContain("parley.db");

    const second = await servingHere([fixture("agent.ts"), "--store", ".parley/parley.db"]);
    const shown = await parleyHere(["task", second.urls[0] ?? "", task.id]);
    expect(shown.out).toContain("violets are blue.");
  });

  test("requires the given tokens, each with its own subject", async () => {
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory", "--token", "a1=alice"], {
      PARLEY_TOKENS: "b2=bob, c3",
    });
    const [url = ""] = urls;
    const whoami = async (token?: string): Promise<unknown> => {
      const { code, out } = await parleyHere([
        "send",
        url,
        "whoami",
        ...(token === undefined ? [] : ["--token", token]),
      ]);
      return code === 0 ? out.trim() : code;
    };
    expect(await whoami("a1")).toBe("alice");
    expect(await whoami("b2")).toBe("bob");
    expect(await whoami("c3")).toMatch(/^token-[0-9a-f]{12}$/);
    expect(await whoami("a1=alice")).toBe(1);
    expect(await whoami()).toBe(1);
  });

  test("accepts API keys, given by their hashes, and tokens of an issuer", async () => {
    const provider = await startProvider();
    try {
      const { key, hash } = JSON.parse((await parleyHere(["key", "--json"])).out) as { key: string; hash: string };
      const { urls, recorded } = await servingHere(
        [fixture("agent.ts"), "--store", "memory", "--issuer", provider.issuer, "--scope", "chat", "--audit"],
        { PARLEY_API_KEYS: `${hash}=carol` },
      );
      const url = urls[0] ?? "";
      const whoami = async (...more: string[]): Promise<string> =>
        (await parleyHere(["send", url, "whoami", ...more])).out.trim();
      expect(await whoami("--header", `x-api-key: ${key}`)).toBe("carol");
      expect(await whoami("--header", "x-api-key: wrong")).toBe("");
      expect(await whoami("--token", (await userToken(provider, { resource: url, scope: "chat" })).access_token)).toBe(
        "ada",
      );
      const other = await userToken(provider, { resource: "https://other.example/", scope: "chat" });
      expect(await whoami("--token", other.access_token)).toBe("");
      await expect.poll(recorded.err).toMatch(/"message":"Audit","event":"authentication","outcome":"refused"/);
    } finally {
      await provider.close();
    }
  });

  test("logs what happens to a task on a terminal, and elsewhere with --audit", async () => {
    const args = [fixture("agent.ts"), "--store", "memory"];
    const states = async (isTerminal: boolean, ...more: string[]): Promise<string> => {
      const { urls, recorded, stop } = await servingHere([...args, ...more], { NO_COLOR: "1" }, isTerminal);
      expect(await parleyHere(["send", urls[0] ?? "", "stream"])).toMatchObject({ code: 0 });
      await stop();
      return recorded.err();
    };
    expect(await states(true)).toMatch(
      /^\S+ info {2}\/ (\S{8}) Task created taskId=\S+\1 contextId=\S+\n.* \1 Task working\n.* \1 Task completed\nStopping/,
    );
    expect(await states(true, "--log-format", "json")).not.toContain("task-created");
    expect(await states(false)).not.toContain("task-created");
    expect(await states(false, "--audit")).toMatch(/"event":"task-created".*\n.*"state":"TASK_STATE_WORKING"/);
  });

  test("signs its cards with --card-key", async () => {
    const made = await parleyHere(["card", "key", "card-key.json"], { cwd: folder });
    await writeFile(join(folder, "keys.json"), made.out);
    const key = join(folder, "card-key.json");
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory", "--card-key", key]);
    const verify = ["card", "verify", urls[0] ?? "", "--keys", "keys.json"];
    expect(await parleyHere(verify, { cwd: folder })).toMatchObject({ code: 0, err: "" });
    const other = await parleyHere(["card", "key", "other.json"], { cwd: folder });
    await writeFile(join(folder, "keys.json"), other.out);
    expect(await parleyHere(verify, { cwd: folder })).toMatchObject({ code: 1 });
  });

  test.each([
    [["--audience", "x"], "require --issuer"],
    [["--card-key", "no.json"], "cannot read no.json"],
    [["--api-key", "two words"], "--api-key <key> must be TOKEN or TOKEN=SUBJECT"],
    [["--host", "0.0.0.0"], "Pass --token, --api-key or --issuer to authenticate callers"],
  ])("rejects %j", async (options, said) => {
    const { code, out, err } = await parleyHere(["serve", fixture("agent.ts"), "--store", "memory", ...options]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(said);
  });

  test("allows pages of an origin to call", async () => {
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory", "--cors", "https://app.example"]);
    const card = `${urls[0]}/.well-known/agent-card.json`;
    const allowed = async (origin: string): Promise<string | null> =>
      (await fetch(card, { headers: { origin } })).headers.get("access-control-allow-origin");
    expect(await allowed("https://app.example")).toBe("https://app.example");
    expect(await allowed("https://other.example")).toBeNull();
  });

  test("announces its public URL, and requires --insecure to be open to others", async () => {
    const open = ["--host", "0.0.0.0", "--insecure", "--public-url", "https://agent.example/dice"];
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory", ...open]);
    expect(urls).toEqual(["https://agent.example/dice"]);
  });

  test("serves over TLS with certificates in files", async () => {
    const { cert, private: key } = await generate([{ name: "commonName", value: "127.0.0.1" }], {
      algorithm: "sha256",
    });
    await writeFile(join(folder, "cert.pem"), cert);
    await writeFile(join(folder, "key.pem"), key);
    const tls = ["--tls-cert", join(folder, "cert.pem"), "--tls-key", join(folder, "key.pem")];
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory", ...tls]);
    const card = `${urls[0]}/.well-known/agent-card.json`;
    const status = await new Promise<number | undefined>((resolve, reject) => {
      get(card, { ca: cert, checkServerIdentity: () => undefined }, (answer) => resolve(answer.resume().statusCode)).on(
        "error",
        reject,
      );
    });
    expect([new URL(card).protocol, status]).toEqual(["https:", 200]);
  });

  test("a port that is taken is reported", async () => {
    const { urls } = await servingHere([fixture("agent.ts"), "--store", "memory"]);
    const { port } = new URL(urls[0] ?? "");
    const { code, out, err } = await parleyHere(["serve", fixture("agent.ts"), "--store", "memory", "--port", port]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(new RegExp(`^parley: .*${port}`));
  });

  test("a store that cannot be opened is reported", async () => {
    await writeFile(join(folder, "file"), "");
    const { code, err } = await parleyHere(["serve", fixture("agent.ts"), "--store", "file/tasks.db"], { cwd: folder });
    expect(code).toBe(1);
    expect(err).toBe("parley: cannot open the store file/tasks.db: a file with that name exists\n");
  });
});

describe("a file without an agent is rejected with the reason", () => {
  test.each([
    ["no-agent.ts", /exports no agent: it has no default export\. Write "export default defineAgent/],
    ["not-an-agent.js", /exports no agent: its default export is of type object/],
    ["throws.ts", /cannot load .*throws\.ts: the database is not there\n$/],
  ])("%s", async (name, message) => {
    const { code, out, err } = await parleyHere(["serve", fixture(name), "--store", "memory"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(message);
  });

  test("with --verbose, where it was thrown", async () => {
    const { err } = await parley(["serve", fixture("throws.ts"), "--verbose"]);
    expect(err).toMatch(/caused by: Error: the database is not there\n.*throws\.ts:1/);
  });
});

test.each(["module", "commonjs"])("a project of type %s runs its TypeScript, with its imports", async (type) => {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await mkdir(join(folder, "lib"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type }));
  await writeFile(join(folder, "lib", "name.ts"), "export enum Name { Agent = 'Enumerated' }\n");
  await writeFile(
    join(folder, "agent.ts"),
    `import { defineAgent } from "@parley/node";
     import { Name } from "./lib/name";
     export default defineAgent({
       name: Name.Agent, description: "d", version: "1", skills: [],
       onMessage: (turn) => turn.reply("hi"),
     });`,
  );
  const { urls } = await serving(["agent.ts", "--store", "memory"]);
  expect((await parleyHere(["card", urls[0] ?? "", "--json"])).out).toContain('"name":"Enumerated"');
});

describe("a token", () => {
  test("may carry a subject, and may end in =", () => {
    expect(parseToken("abc=alice")).toEqual(["abc", "alice"]);
    expect(parseToken("YWI==")).toEqual(["YWI==", expect.stringMatching(/^token-/)]);
    expect(parseToken("YWI===bob")).toEqual(["YWI==", "bob"]);
  });

  test("that cannot be sent in a header is rejected", () => {
    expect(() => parseToken("two words")).toThrow(UsageError);
    expect(() => parseToken("=alice")).toThrow(UsageError);
  });
});
