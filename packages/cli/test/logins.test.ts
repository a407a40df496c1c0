import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { inPieces, type Keychain } from "../src/logins/keychain.ts";
import { covers, loginFolder, Logins, loginUrl, type Login } from "../src/logins/logins.ts";
import { PrivateFiles } from "../src/logins/private-files.ts";

let folder = "";
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "parley-logins-")), "parley", "logins");
});
afterEach(() => rm(join(folder, "..", ".."), { recursive: true }));

const login: Omit<Login, "secretsIn"> = {
  url: "https://agent.example/weather",
  scheme: "key",
  kind: "apiKey",
  settings: {},
  origins: [],
  since: "2026-01-31T12:00:00.000Z",
};
const secrets = { key: "s3cret-of-the-test" };

/** A keychain in memory. */
function keychain(): Keychain & { readonly entries: Map<string, string> } {
  const entries = new Map<string, string>();
  return {
    entries,
    get: async (name) => entries.get(name),
    set: async (name, value) => void entries.set(name, value),
    delete: async (name) => void entries.delete(name),
  };
}

describe("logins without a keychain", () => {
  const logins = (): Logins => new Logins(folder, async () => undefined);

  test("are in files that only their user may read", async () => {
    expect(await logins().save(login, secrets)).toEqual({ ...login, secretsIn: "file" });
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const [name = ""] = await readdir(folder);
    expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
    const [found] = await logins().list();
    expect(found).toEqual({ ...login, secretsIn: "file" });
    expect(await logins().secrets(found!)).toEqual(secrets);
  });

  test("are replaced by the next one for the same scheme, and deleted", async () => {
    await logins().save(login, secrets);
    await logins().save({ ...login, account: "ada" }, { key: "other" });
    await logins().save({ ...login, scheme: "token" }, secrets);
    const all = await logins().list();
    expect(all.map(({ scheme, account }) => [scheme, account])).toEqual([
      ["key", "ada"],
      ["token", undefined],
    ]);
    expect(await logins().secrets(all[0]!)).toEqual({ key: "other" });
    await logins().remove(all[0]!);
    expect(await logins().list()).toEqual([all[1]]);
    await expect(logins().secrets(all[0]!)).rejects.toThrow("Log in again: parley login https://agent.example/weather");
  });

  test("that others could read or change are rejected", async () => {
    await logins().save(login, secrets);
    const path = logins().pathOf(login);
    await chmod(path, 0o644);
    await expect(logins().list()).rejects.toThrow(`chmod 600 ${path}`);
    await chmod(path, 0o600);
    await chmod(folder, 0o777);
    await expect(logins().save(login, secrets)).rejects.toThrow(`chmod 700 ${folder}`);
  });

  test("do not follow a link, to read or to write", async () => {
    const other = join(folder, "..", "other.json");
    await logins().save(login, secrets);
    const path = logins().pathOf(login);
    await writeFile(other, await readFile(path), { mode: 0o600 });
    await rm(path);
    await symlink(other, path);
    await expect(logins().list()).rejects.toThrow("must not be a link");
    await logins().save(login, { key: "new" });
    expect(await readFile(other, "utf8")).toContain(secrets.key);
    expect(await logins().secrets((await logins().list())[0]!)).toEqual({ key: "new" });
  });

  test.each([
    ["nothing", ""],
    ["half a login", '{"url":"https://agent.example/weather","sch'],
    ["another login", JSON.stringify({ ...login, scheme: "other", secretsIn: "file", secrets })],
    ["a list", "[]"],
  ])("are rejected if a file holds %s", async (_, text) => {
    await logins().save(login, secrets);
    await writeFile(logins().pathOf(login), text);
    await expect(logins().list()).rejects.toThrow("is not a login of parley");
  });

  test.each(["fifo", "folder"])("are rejected if a %s takes the place of a file", async (what) => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = logins().pathOf(login);
    if (what === "folder") await mkdir(path);
    else await once(spawn("sh", ["-c", 'mkfifo "$0"', path]), "close");
    await expect(logins().list()).rejects.toThrow("must be a regular file");
  });
});

describe("logins with a keychain", () => {
  test("have their secrets there, and none in a file", async () => {
    const chain = keychain();
    const logins = new Logins(folder, async () => chain);
    const kept = await logins.save(login, secrets);
    expect(kept.secretsIn).toBe("keychain");
    expect(await readFile(logins.pathOf(login), "utf8")).not.toContain(secrets.key);
    expect([...chain.entries.values()]).toEqual([JSON.stringify(secrets)]);
    expect(await logins.secrets(kept)).toEqual(secrets);
    await logins.remove(kept);
    expect(chain.entries.size).toBe(0);
    expect(await logins.list()).toEqual([]);
  });

  test("say what to do if the keychain is locked or has lost them", async () => {
    const chain = keychain();
    const logins = new Logins(folder, async () => chain);
    const kept = await logins.save(login, secrets);
    chain.entries.clear();
    await expect(logins.secrets(kept)).rejects.toThrow("the keychain has no secret for https://agent.example/weather");
    const locked = new Logins(folder, async () => ({ ...chain, get: () => Promise.reject(new Error("it is locked")) }));
    await expect(locked.secrets(kept)).rejects.toThrow("cannot open the keychain: it is locked. Unlock it");
  });

  test("are in a file if the keychain cannot store them, as on a server", async () => {
    const logins = new Logins(folder, async () => ({
      ...keychain(),
      set: () => Promise.reject(new Error("no secret service")),
    }));
    const kept = await logins.save(login, secrets);
    expect(kept.secretsIn).toBe("file");
    expect(await logins.secrets(kept)).toEqual(secrets);
  });
});

describe("a long secret in a keychain", () => {
  test("is stored in pieces that every system accepts, and all of them are deleted", async () => {
    const chain = keychain();
    const pieces = inPieces(chain);
    for (const value of ["x".repeat(5000), "short", "y".repeat(2401), ""]) {
      await pieces.set("name", value);
      expect(await pieces.get("name")).toBe(value);
      expect(Math.max(...[...chain.entries.values()].map(({ length }) => length))).toBeLessThanOrEqual(1200);
    }
    expect(chain.entries.size).toBe(1);
    await pieces.set("name", "z".repeat(2401));
    await pieces.delete("name");
    expect(chain.entries.size).toBe(0);
  });

  test("is the old one or the new one after a crash at any point", async () => {
    const [before, after] = ["a".repeat(3000), "b".repeat(3000)];
    for (let steps = 0; ; steps++) {
      const chain = keychain();
      await inPieces(chain).set("name", before);
      let left = steps;
      const step = <T>(run: () => T): T => {
        if (left-- === 0) throw new Error("crash");
        return run();
      };
      const crashing = inPieces({
        get: (name) => chain.get(name),
        set: async (name, value) => step(() => chain.set(name, value)),
        delete: async (name) => step(() => chain.delete(name)),
      });
      const done = await crashing.set("name", after).then(
        () => true,
        () => false,
      );
      expect([before, after]).toContain(await inPieces(chain).get("name"));
      if (done) {
        expect(steps).toBeGreaterThan(4);
        break;
      }
    }
  });
});

describe("the address of a login", () => {
  test("is the agent's, in whatever form the card's URL was given", () => {
    expect(loginUrl("https://Agent.example:443/weather/")).toBe("https://agent.example/weather");
    expect(loginUrl("https://agent.example/weather/.well-known/agent-card.json?x#y")).toBe(
      "https://agent.example/weather",
    );
    expect(loginUrl("https://agent.example")).toBe("https://agent.example");
  });

  test.each([
    ["https://agent.example", true],
    ["https://agent.example/a/b", true],
    ["https://agent.example/.well-known/agent-card.json", true],
    ["http://agent.example/", false],
    ["https://agent.example:8443/", false],
    ["https://agent.example.evil.example/", false],
    ["https://evil.example/?https://agent.example", false],
    ["https://agent.example@evil.example/", false],
  ])("of a whole origin: %s is covered: %s", (url, covered) => {
    expect(covers("https://agent.example", url)).toBe(covered);
  });

  test("of a path does not cover its siblings or paths that leave it", () => {
    const at = "https://agent.example/weather";
    expect(["/weather", "/weather/", "/weather/v1"].map((path) => covers(at, `https://agent.example${path}`))).toEqual([
      true,
      true,
      true,
    ]);
    for (const path of ["/", "/weatherman", "/weather/../bank", "/weather/%2e%2e/bank", "/Weather"]) {
      expect(covers(at, `https://agent.example${path}`), path).toBe(false);
    }
  });

  test("that is the longest takes precedence", async () => {
    const logins = new Logins(folder, async () => undefined);
    for (const url of ["https://a.example", "https://a.example/x", "https://b.example/x/y"]) {
      await logins.save({ ...login, url }, secrets);
    }
    const urls = async (url: string): Promise<readonly string[]> => (await logins.for(url)).map((one) => one.url);
    expect(await urls("https://a.example/x/y")).toEqual(["https://a.example/x"]);
    expect(await urls("https://a.example/y")).toEqual(["https://a.example"]);
    expect(await urls("https://b.example/x")).toEqual([]);
  });
});

describe("the folder of logins", () => {
  test("follows the environment only", () => {
    expect(loginFolder({ HOME: "/home/ada" })).toBe("/home/ada/.config/parley/logins");
    expect(loginFolder({ HOME: "/home/ada", XDG_CONFIG_HOME: "/config" })).toBe("/config/parley/logins");
    expect(loginFolder({})).toBeUndefined();
  });
});

describe("access to a login by several processes", () => {
  test("is serialized", async () => {
    const files = Array.from({ length: 5 }, () => new PrivateFiles(folder));
    let inside = 0;
    let most = 0;
    await Promise.all(
      files.map((each) =>
        each.exclusively("login", async () => {
          most = Math.max(most, ++inside);
          await each.write("x", "y");
          inside--;
        }),
      ),
    );
    expect(most).toBe(1);
    expect(await readdir(folder)).toEqual(["x"]);
  });

  test("continues after the process that held the lock was killed", async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const killed = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    await once(killed, "spawn");
    const files = new PrivateFiles(folder);
    const [lock = ""] = await files.exclusively("login", async () => readdir(folder));
    const text = await files.exclusively("login", () => readFile(join(folder, lock), "utf8"));
    await writeFile(join(folder, lock), text.replace(` ${process.pid} `, ` ${killed.pid} `));
    const waiting = files.exclusively("login", async () => "done");
    killed.kill("SIGKILL");
    expect(await waiting).toBe("done");
  });
});
