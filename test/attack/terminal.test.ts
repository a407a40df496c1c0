import { mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { run } from "../../packages/cli/src/program.ts";
import { recordedIo } from "../../packages/cli/test/support/io.ts";

/*
 * An agent, and the authorization server that its card names, write terminal control characters into everything that a command prints:
 * states that wait, links, streams in pieces, files, and logins. File names also try to lead out of their folder.
 */

/** Control characters that clear the screen, set its title, make a link, move the cursor, reverse text, and hide text. */
const evil =
  "\u001b[2J\u001b]0;owned\u0007\u001b]8;;https://evil.example\u001b\\here\u001b]8;;\u001b\\\r\u0008\u009b2J\u0090\u202e\u2067\u{e0041}\u2028ok";

// The characters on which a terminal would act.
const acting =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e00ff}]/u;

/** Control sequences of the command line itself: colours, and the progress line of a file. */
// eslint-disable-next-line no-control-regex
const ours = /\u001b\[\d{1,2}m|\r\u001b\[K/g;

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void;

async function listening(handle: Handle): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => handle(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "parley-terminal-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

const cardOf = (host: string, more: object = {}) => ({
  name: evil,
  description: evil,
  version: evil,
  supportedInterfaces: [{ url: `http://${host}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
  ...more,
});

/** Starts an agent that answers each call with these events. */
function agent(events: readonly object[], more: object = {}): Promise<string> {
  return listening((request, response, body) => {
    if (request.method === "GET") {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify(cardOf(request.headers.host ?? "", more)));
    }
    const { id, method } = JSON.parse(body) as { id: unknown; method: string };
    const line = (result: unknown): string => JSON.stringify({ jsonrpc: "2.0", id, result });
    if (/Stream|Subscribe/.test(method)) {
      response.setHeader("content-type", "text/event-stream");
      return response.end(events.map((event) => `data: ${line(event)}\n\n`).join(""));
    }
    response.setHeader("content-type", "application/json");
    const [first] = events as readonly { readonly task?: object }[];
    return response.end(line(method === "SendMessage" ? { task: first?.task } : first?.task));
  });
}

interface Shown {
  readonly text: string;
  readonly code: number;
}

async function shown(
  args: readonly string[],
  options: { readonly terminal?: boolean; readonly cwd?: string; readonly stdin?: string } = {},
): Promise<Shown> {
  const { terminal = true, cwd = await folder(), stdin = "" } = options;
  const pages: string[] = [];
  const { io, both } = recordedIo({
    terminal,
    cwd,
    stdin,
    env: { XDG_CONFIG_HOME: join(cwd, "config"), PARLEY_KEYCHAIN: "off", TERM: "xterm" },
    openPage: (url) => pages.push(url),
  });
  const code = await run(args, io);
  expect(pages.filter((page) => !/^https?:\/\//.test(page))).toEqual([]);
  const text = both();
  expect(text.replaceAll(ours, ""), args.join(" ")).not.toMatch(acting);
  return { text, code };
}

const message = (parts: readonly object[], more: object = {}) => ({
  messageId: evil,
  role: "ROLE_AGENT",
  parts,
  metadata: { [evil]: evil },
  ...more,
});
const task = (state: string, parts: readonly object[], artifacts: readonly object[] = []) => ({
  task: {
    id: evil,
    contextId: evil,
    status: { state: `TASK_STATE_${state}`, message: message(parts), timestamp: "2026-01-31T12:00:00Z" },
    artifacts,
    history: [message(parts)],
    metadata: { [evil]: evil },
  },
});

const authorization = (url: string) => ({
  data: { "urn:parley:extension:in-task-authorization:v1": { id: "1", form: evil, url, expiresAt: evil } },
});

describe("a hostile agent on a terminal", () => {
  const parts = [
    { text: evil },
    { data: { [evil]: [evil, { [evil]: evil }] }, mediaType: evil },
    { url: `https://x.example/${evil}`, filename: evil, mediaType: evil },
    { url: `javascript:alert("${evil}")` },
    { raw: "AAAA", filename: evil, mediaType: evil },
    authorization(`https://x.example/${evil}`),
  ];
  const artifact = { artifactId: evil, name: evil, description: evil, parts };
  const states = ["INPUT_REQUIRED", "AUTH_REQUIRED", "FAILED", "REJECTED", "CANCELED", "COMPLETED"];

  it.each(states)("is shown without effect in %s", async (state) => {
    const url = await agent([task(state, parts, [artifact])]);
    for (const terminal of [true, false]) {
      for (const words of [
        ["send", url, "hello"],
        ["watch", url, "t"],
        ["task", url, "t"],
        ["cancel", url, "t"],
      ]) {
        for (const more of [[], ["--json"], ["--full"], ["--verbose"]]) {
          if (more[0] === "--full" && words[0] === "cancel") continue;
          const { text } = await shown([...words, ...more], { terminal });
          expect(text.length).toBeGreaterThan(10);
        }
      }
    }
  });

  it("has no effect with escapes that it sends in pieces, in text and in names", async () => {
    const pieces = `${evil}\u001b]8;;x\u0007`.split("").map((character) => ({
      artifactUpdate: {
        taskId: "t",
        contextId: "c",
        append: true,
        artifact: { artifactId: "a", name: character, parts: [{ text: character }] },
      },
    }));
    const progress = evil.split("").map((character, at) => ({
      statusUpdate: {
        taskId: "t",
        contextId: "c",
        status: { state: "TASK_STATE_WORKING", message: { ...message([{ text: character }]), messageId: String(at) } },
      },
    }));
    const begin = { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } };
    const first = { artifactUpdate: { ...pieces[0]?.artifactUpdate, append: false } };
    const url = await agent([begin, first, ...pieces, ...progress, task("COMPLETED", [{ text: evil }])]);
    for (const terminal of [true, false]) await shown(["send", url, "hello"], { terminal });
  });

  it("cannot make a copied command do something else", async () => {
    const id = "x'; touch owned; echo '$(touch owned)`touch owned`";
    const waiting = { task: { id, contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" } } };
    const { text } = await shown(["send", await agent([waiting]), "hello"]);
    const [command = ""] = text.split("\n").filter((line) => line.includes("--task"));
    // Each quote in the id ends the quoted word, follows as an escaped quote, and starts another quoted word.
    expect(command).toContain(`--task '${id.replaceAll("'", `'\\''`)}'`);
  });
});

describe("files of a hostile agent", () => {
  const names = [
    "../../../escaped",
    "..\\..\\escaped",
    "/etc/escaped",
    "C:\\escaped",
    "....//....//escaped",
    "a/../../escaped",
    "%2e%2e%2fescaped",
    "..",
    ".",
    "",
    ".bashrc",
    ".parley-x.part",
    "\u0000",
    "a\u0000.txt",
    "a\n.txt",
    "-rf",
    "~",
    "CON",
    "con.txt",
    "NUL .txt",
    "COM¹",
    "x:stream",
    "\u202egnp.exe",
    `${"é".repeat(400)}.txt`,
    "link.txt",
    "LINK.txt",
    evil,
  ];

  it("stay in the folder, whatever their name is, and follow no link in it", async () => {
    const artifacts = names.flatMap((filename, at) => [
      { artifactId: `f${at}`, parts: [{ raw: "aGk=", filename }] },
      { artifactId: filename, name: filename, parts: [{ raw: "aGk=" }] },
    ]);
    const url = await agent([task("COMPLETED", [{ text: "done" }], artifacts)]);
    for (const more of [[], ["--overwrite"]]) {
      const cwd = await folder();
      const outside = join(cwd, "outside.txt");
      await writeFile(outside, "mine");
      const out = join(cwd, "a", "b", "out");
      await mkdir(out, { recursive: true });
      await symlink(outside, join(out, "link.txt"));
      await shown(["task", url, "t", "--out", out, ...more], { cwd });
      expect(await readFile(outside, "utf8")).toBe("mine");
      expect((await readdir(cwd)).filter((name) => name !== "config")).toEqual(["a", "outside.txt"]);
      expect([await readdir(join(cwd, "a")), await readdir(join(cwd, "a", "b"))]).toEqual([["b"], ["out"]]);
      const written = await readdir(out);
      if (more.length === 0) expect(await readlink(join(out, "link.txt"))).toBe(outside);
      expect(written.length).toBeGreaterThan(more.length === 0 ? names.length : 15);
      for (const name of written) {
        expect(name).toBe(basename(name));
        expect(name, JSON.stringify(name)).not.toMatch(acting);
        expect(name, JSON.stringify(name)).not.toMatch(/^[.-]|^(?:con|nul|com¹) *(?:\.|$)|[:\\]/i);
      }
    }
  });
});

describe("a hostile authorization server", () => {
  it.each(["device", "browser", "client"] as const)("prints nothing unescaped, by %s", async (flow) => {
    const answers: readonly ((origin: string) => object)[] = [
      (origin) => ({
        device_code: "d",
        user_code: evil,
        verification_uri: `${origin}/${evil}`,
        expires_in: 1,
        interval: 1,
      }),
      (origin) => ({
        device_code: "d",
        user_code: evil,
        verification_uri: origin,
        verification_uri_complete: `javascript:alert(${evil})`,
        expires_in: 1,
      }),
      () => ({ error: "invalid_client", error_description: evil, error_uri: evil }),
      () => ({ [evil]: evil }),
    ];
    for (const answer of answers) {
      const server: string = await listening((request, response, body) => {
        const origin = `http://${request.headers.host ?? ""}`;
        const send = (value: object, status = 200): void => {
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
        };
        if (request.url?.includes("agent-card") === true) {
          const urls = { tokenUrl: `${origin}/token`, scopes: { [evil]: evil } };
          const flows = {
            device: { deviceCode: { ...urls, deviceAuthorizationUrl: `${origin}/device` } },
            browser: { authorizationCode: { ...urls, authorizationUrl: `file:///etc/passwd#${evil}` } },
            client: { clientCredentials: urls },
          };
          return send(
            cardOf(request.headers.host ?? "", {
              securitySchemes: { [evil]: { oauth2SecurityScheme: { flows: flows[flow], description: evil } } },
              securityRequirements: [{ schemes: { [evil]: { list: [evil] } } }],
            }),
          );
        }
        if (request.method === "GET") return send({ error: evil }, 404);
        if (request.url === "/rpc") {
          const { id } = JSON.parse(body) as { id: unknown };
          return send({ jsonrpc: "2.0", id, error: { code: -32001, message: evil } });
        }
        return send(answer(origin), request.url === "/device" ? 200 : 400);
      });
      const { code } = await shown(["login", server, "--client-id", "ada", "--flow", flow], { stdin: "a-secret\n" });
      expect(code).not.toBe(0);
    }
  });
});
