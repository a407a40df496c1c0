import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { anyOf, apiKey, bearer } from "@parley/a2a/auth";
import type { Server } from "@parley/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import scripted from "../../packages/cli/test/fixtures/agent.ts";
import { parleyCommand, type Finished } from "../../packages/cli/test/support/parley.ts";
import { startServer } from "../../packages/cli/test/support/server.ts";

/**
 * Logins of `parley` in a real keychain: GNOME Keyring, in a session of D-Bus of its own for each command, with its files in a
 * temporary folder. It needs the programs gnome-keyring-daemon and dbus-run-session.
 */

/** Runs a command in a session of D-Bus of its own. It is a program of the system, not of a package. */
const session = "dbus-run-session";

const key = "key-s3cret-0123456789";
/** Longer than what one entry takes on every system. */
const token = `token-s3cret-${"0123456789".repeat(400)}`;

let home = "";
let server: Server;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "parley-keychain-"));
  const callers = anyOf(apiKey({ [key]: { subject: "ada" } }), bearer({ [token]: { subject: "bob" } }));
  server = await startServer(scripted, { authenticator: callers });
});
afterEach(async () => {
  await server.close({ grace: 0 });
  await rm(home, { recursive: true });
});

/** Runs a command in a new session. `unlock`: whether the keychain is opened with its password. */
async function run(args: readonly string[], { stdin = "", unlock = true } = {}): Promise<Finished> {
  const runtime = join(home, "run");
  await mkdir(runtime, { recursive: true, mode: 0o700 });
  const open = unlock ? "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; " : "";
  const child = spawn(session, ["--", "sh", "-c", `${open}exec "$@"`, "sh", ...parleyCommand, ...args], {
    env: { PATH: process.env["PATH"], HOME: home, XDG_RUNTIME_DIR: runtime, XDG_DATA_HOME: join(home, "data") },
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdin.end(stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  return { code: code ?? undefined, out, err };
}

/** All files that the user has now. */
async function files(): Promise<string> {
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const texts = entries.filter((entry) => entry.isFile()).map((entry) => readFile(join(entry.parentPath, entry.name)));
  return (await Promise.all(texts)).map((bytes) => bytes.toString("latin1")).join("\n");
}

describe("a login with a keychain", () => {
  test.each([
    ["an API key", ["--scheme", "apiKey"], key, "ada"],
    ["a long token", ["--scheme", "bearer"], token, "bob"],
  ])("stores %s there, encrypted, until logout", async (_, options, secret, subject) => {
    const login = await run(["login", server.url, ...options], { stdin: `${secret}\n` });
    expect(login).toMatchObject({ code: 0, out: "" });
    expect(login.err).toContain(`Logged in to ${server.url}. Stored the secret in the keychain.\n`);
    expect(await files()).toContain(server.url);
    expect(await files()).not.toContain(secret.slice(0, 20));
    expect(await run(["send", server.url, "whoami"])).toMatchObject({ code: 0, out: `${subject}\n` });
    expect((await run(["whoami"])).out).toMatch(/ keychain +20/);
    expect(await run(["logout", server.url])).toMatchObject({ code: 0 });
    expect(await run(["send", server.url, "whoami"])).toMatchObject({ code: 1, out: "" });
  });

  test("says what to do if the keychain is locked", async () => {
    await run(["login", server.url], { stdin: `${key}\n` });
    const { code, out, err } = await run(["send", server.url, "whoami"], { unlock: false });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/keychain: .*Log in again: .*\blogin/);
  });
});

test("a login in a session without a keychain is in a file, and the output says so", async () => {
  const { code, err } = await run(["login", server.url], { stdin: `${key}\n`, unlock: false });
  expect(code).toBe(0);
  expect(err).toContain("which only you can read.\n");
  expect(await run(["send", server.url, "whoami"], { unlock: false })).toMatchObject({ code: 0, out: "ada\n" });
});
