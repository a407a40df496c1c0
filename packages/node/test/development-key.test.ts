import { spawn, type ChildProcess } from "node:child_process";
import { chmod, chown, link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { connect } from "@parley/a2a";
import { CannotMakeKey, developmentKey } from "../src/development-key.ts";

/* Tests the development key for webhooks, which persists between processes (docs/push.md). */

const script = fileURLToPath(new URL("support/webhook-child.mjs", import.meta.url));
/** An owner whose files the server must reject. Root can read a file of any mode, but must reject a file that belongs to another user. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-key-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

describe("the file of the key", () => {
  it("is created once, readable only by its user, and leaves no other file", async () => {
    const folder = join(await temporaryFolder(), "made", ".parley");
    const key = await developmentKey(folder);
    expect(Buffer.from(key, "base64")).toHaveLength(32);
    expect(await developmentKey(folder)).toBe(key);
    expect(await readdir(folder)).toEqual(["development-key"]);
    expect([await modeOf(folder), await modeOf(join(folder, "development-key"))]).toEqual(["700", "600"]);
    // The file has the same format as PARLEY_KEYS.
    expect(await readFile(join(folder, "development-key"), "utf8")).toBe(`${key}\n`);
  });

  it("is the same for processes that create it at once", async () => {
    const folder = join(await temporaryFolder(), ".parley");
    const keys = await Promise.all(Array.from({ length: 50 }, () => developmentKey(folder)));
    expect(new Set(keys).size).toBe(1);
    expect(await readdir(folder)).toEqual(["development-key"]);
  });

  it.each([0o640, 0o604, 0o620, 0o601])("is rejected if others have rights to it: %o", async (mode) => {
    const folder = await temporaryFolder();
    const key = await developmentKey(folder);
    const path = join(folder, "development-key");
    await chmod(path, mode);
    await expect(developmentKey(folder)).rejects.toThrow(`chmod 600 ${path}`);
    await chmod(path, 0o600);
    expect(await developmentKey(folder)).toBe(key);
  });

  it.each([
    ["nothing", ""],
    ["half of a key", "c2VjcmV0LW9mLWRl"],
    ["a key that is too long", `${"c2Vj".repeat(20)}=`],
    ["another text", "secret-of-development: yes"],
    ["bytes", "\0\u0001\u0002\n".repeat(40)],
    ["megabytes", "A".repeat(4 << 20)],
  ])("with %s is rejected, kept, and not repeated in the error", async (_what, content) => {
    const folder = await temporaryFolder();
    const path = join(folder, "development-key");
    await writeFile(path, content, { mode: 0o600 });
    const error = await developmentKey(folder).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ message: expect.stringContaining(`${path} must contain 32 bytes`) as string });
    expect(error).not.toBeInstanceOf(CannotMakeKey);
    if (content.length > 8) expect(String(error)).not.toContain(content.slice(0, 8));
    expect(await readFile(path, "utf8")).toBe(content);
  });

  it("that cannot be read or belongs to another user is rejected", async () => {
    const folder = await temporaryFolder();
    await developmentKey(folder);
    const path = join(folder, "development-key");
    await (isRoot ? chown(path, nobody, nobody) : chmod(path, 0o000));
    await expect(developmentKey(folder)).rejects.toThrow(/set PARLEY_KEYS, or `developmentKey: false`/);
  });

  it("that is a folder or a pipe is rejected, without waiting for it", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "development-key"), { mode: 0o700 });
    await expect(developmentKey(folder)).rejects.toThrow("must be a file");
    const other = await temporaryFolder();
    const made = spawn("mkfifo", ["-m", "600", join(other, "development-key")]);
    await new Promise((resolve) => made.once("exit", resolve));
    await expect(developmentKey(other)).rejects.toThrow("must be a file");
  });

  it("that cannot be created is skipped: the server continues without a key", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    await expect(developmentKey(join(folder, "file", ".parley"))).rejects.toBeInstanceOf(CannotMakeKey);
  });
});

describe("links and folders of others", () => {
  it("a key that is a link is not followed, to a file or to a missing one", async () => {
    const [folder, elsewhere] = [await temporaryFolder(), await temporaryFolder()];
    const target = join(elsewhere, "target");
    await symlink(target, join(folder, "development-key"));
    await expect(developmentKey(folder)).rejects.toThrow("must not be a link");
    expect(await readdir(elsewhere)).toEqual([]);
    await writeFile(target, "a".repeat(43) + "=", { mode: 0o600 });
    await expect(developmentKey(folder)).rejects.toThrow("must not be a link");
    expect(await readFile(target, "utf8")).toBe("a".repeat(43) + "=");
  });

  it("a folder that is a link of the same user is followed", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "disk"), { mode: 0o700 });
    await symlink(join(folder, "disk"), join(folder, ".parley"));
    const key = await developmentKey(join(folder, ".parley"));
    expect(await readFile(join(folder, "disk", "development-key"), "utf8")).toBe(`${key}\n`);
  });

  it("a folder that leads to another user's, or to a missing one, gets no key", async () => {
    const folder = await temporaryFolder();
    const other = join(folder, "theirs");
    await mkdir(other, { mode: 0o755 });
    if (isRoot) await chown(other, nobody, nobody);
    await symlink(isRoot ? other : "/proc", join(folder, "link"));
    await expect(developmentKey(join(folder, "link"))).rejects.toThrow(
      isRoot ? "leads to a folder of another user" : "",
    );
    if (isRoot) await expect(developmentKey(other)).rejects.toThrow("belongs to another user");
    await symlink(join(folder, "nowhere"), join(folder, "dangling"));
    await expect(developmentKey(join(folder, "dangling"))).rejects.toBeInstanceOf(CannotMakeKey);
    expect((await readdir(folder)).toSorted()).toEqual(["dangling", "link", "theirs"]);
    expect(await readdir(other)).toEqual([]);
  });

  it.each([0o777, 0o1777, 0o702])(
    "a folder that anyone may write gets no key, and a key in it is not used: %o",
    async (mode) => {
      const folder = join(await temporaryFolder(), ".parley");
      await mkdir(folder);
      await chmod(folder, mode);
      await expect(developmentKey(folder)).rejects.toThrow(`chmod o-w ${folder}`);
      expect(await readdir(folder)).toEqual([]);
      await chmod(folder, 0o700);
      await developmentKey(folder);
      await chmod(folder, mode);
      await expect(developmentKey(folder)).rejects.toThrow(`chmod o-w ${folder}`);
    },
  );

  it("files of others beside it, such as half of a key, are not used and do no harm", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "development-key.0123456789abcdef.new"), "x");
    await symlink("/etc/passwd", join(folder, "development-key.fedcba9876543210.new"));
    const key = await developmentKey(folder);
    await link(join(folder, "development-key"), join(folder, "second"));
    expect(await developmentKey(folder)).toBe(key);
  });
});

interface Child {
  readonly child: ChildProcess;
  readonly log: () => string;
  /** The server's URL. If the process ends, the promise rejects with its log. */
  readonly url: Promise<string>;
}

/** Starts a server in a separate process, in this folder. */
function start(cwd: string, options: object = {}, env: Readonly<Record<string, string>> = {}): Child {
  const { NODE_ENV: _, PARLEY_KEYS: __, ...inherited } = process.env;
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { cwd, env: { ...inherited, ...env } });
  let [out, log] = ["", ""];
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const url = new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.includes("\n")) resolve(out.trim());
    });
    child.once("exit", () => reject(new Error(log)));
  });
  url.catch(() => undefined);
  onTestFinished(() => end(child));
  return { child, log: () => log, url };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

const keySetOf = async (url: string): Promise<string> => (await fetch(`${url}/.well-known/jwks.json`)).text();

describe("a server in development", () => {
  it("continues with its webhooks after it was killed, with the same key", async () => {
    const folder = await temporaryFolder();
    const seen: string[] = [];
    const hook = createServer((request, response) => {
      seen.push(String(request.headers.authorization));
      request.resume().on("end", () => response.end());
    });
    await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void hook.close());
    const first = start(folder);
    const keySet = await keySetOf(await first.url);
    const client = await connect(await first.url);
    const { task } = await client.sendMessage("hello");
    const taskId = task?.id ?? "";
    const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
    const authentication = { scheme: "Basic", credentials: "secret-credentials" };
    await client.createTaskPushNotificationConfig({ taskId, url, authentication });
    await end(first.child);
    expect(first.log()).toContain("development key in");

    const second = start(folder);
    expect(await keySetOf(await second.url)).toBe(keySet);
    await (await connect(await second.url)).sendMessage({ parts: [{ text: "Oslo" }], taskId });
    await vi.waitFor(() => expect(seen).toContain("Basic secret-credentials"));
    expect(new Set(seen)).toEqual(new Set(["Basic secret-credentials"]));
    expect(second.log()).not.toContain("ends with this process");
  });

  it("uses the key of servers that start at the same time", async () => {
    const folder = await temporaryFolder();
    const servers = [start(folder), start(folder), start(folder)];
    const sets = await Promise.all(servers.map(async ({ url }) => keySetOf(await url)));
    expect(new Set(sets).size).toBe(1);
  });

  it.each<readonly [string, object, Readonly<Record<string, string>>]>([
    ["in production", {}, { NODE_ENV: "production" }],
    ["with the option off", { developmentKey: false }, {}],
    ["with a store in memory", { inMemory: true }, {}],
    ["with keys", {}, { PARLEY_KEYS: Buffer.alloc(32, 1).toString("base64") }],
  ])("creates no file %s", async (_when, options, env) => {
    const folder = await temporaryFolder();
    const { url, log } = start(folder, options, env);
    await url;
    expect(await readdir(join(folder, ".parley")).catch(() => [])).not.toContain("development-key");
    expect(log().includes("ends with this process")).toBe(!("PARLEY_KEYS" in env));
  });

  it("does not start if the file cannot be used, or behind a proxy without keys, and says what to do", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, ".parley"), { mode: 0o700 });
    await expect(start(folder, { publicUrl: "https://agents.example.com" }).url).rejects.toThrow("push.keys");
    expect(await readdir(join(folder, ".parley"))).not.toContain("development-key");
    await writeFile(join(folder, ".parley", "development-key"), "x", { mode: 0o600 });
    await expect(start(folder).url).rejects.toThrow("must contain 32 bytes in base64");
  });
});
