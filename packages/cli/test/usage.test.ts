import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { createProgram, run } from "../src/program.ts";
import { timeAt } from "../src/options.ts";
import { recordedIo } from "./support/io.ts";

const url = "http://127.0.0.1:1";

async function result(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const { io, out, err } = recordedIo();
  const code = await run(argv, io);
  return { code, out: out(), err: err() };
}

describe("bad usage ends with 2, says what is wrong, and writes nothing to standard output", () => {
  test.each([
    [[], /Usage: parley/],
    [["dance"], /unknown command 'dance'/],
    [["crad", url], /Did you mean card/],
    [["card"], /<url> is missing\nUsage: parley card show \[options\] <url>/],
    [["card", url, "more"], /there are 2 arguments, and parley card show takes 1: <url>/],
    [
      ["card", "localhost:4000"],
      /^parley: <url> cannot be "localhost:4000": it is not an http or https URL; did you mean http:\/\/localhost:4000\n$/,
    ],
    [["card", "ftp://x"], /not an http or https URL/],
    [
      ["card", url, "--binding", "SMTP"],
      /^parley: --binding <name> cannot be "SMTP": allowed choices are JSONRPC, HTTP\+JSON, GRPC\n$/,
    ],
    [["card", url, "--header", "nonsense"], /not "Name: value"/],
    [["card", url, "--header", "a: b\nc: d"], /not "Name: value"/],
    [["card", url, "--header", "a: \u2713"], /not "Name: value"/],
    [["card", url, "--token", "two words"], /--token <token> holds characters that no header can carry/],
    [["send", url], /nothing to send/],
    [["send", url, ""], /nothing to send/],
    [["send", url, "hi", "--shout"], /unknown option '--shout'/],
    [["send", url, "hi", "--file", "https://"], /not a URL/],
    [["send", url, "hi", "--file", "no-such-file.csv"], /cannot read no-such-file.csv: no such file/],
    [["watch", url], /<task> is missing\nUsage: parley watch/],
    [["tasks", url, "--state", "sleeping"], /--state <state> cannot be "sleeping": known states: submitted, working/],
    [["tasks", url, "--since", "yesterday"], /neither a time/],
    [["tasks", url, "--limit", "0"], /whole number, at least 1/],
    [["tasks", url, "--limit", "-5"], /whole number/],
    [["task", url, "id", "--history", "1.5"], /whole number/],
    [["serve"], /<file> is missing\nUsage: parley serve/],
    [["serve", "agent.ts", "--port", "70000"], /from 0 to 65535/],
    [["serve", "agent.ts", "--token", "ä"], /--token <token> must be TOKEN or TOKEN=SUBJECT/],
    [["serve", "agent.ts", "--host", "0.0.0.0"], /Set --token, --api-key or --issuer for callers, or --insecure/],
    [["serve", "agent.ts", "--host", "0.0.0.0", "--insecure"], /--public-url/],
    [
      ["serve", "agent.ts", "--host", "0.0.0.0", "--token", "s3cret", "--public-url", "https://agent.example"],
      /--tls-cert and --tls-key, or --trust-proxy/,
    ],
    [["serve", "agent.ts", "--tls-cert", "cert.pem"], /--tls-cert and --tls-key go together/],
    [["serve", "no-such.ts"], /cannot read no-such.ts: no such file/],
    [["serve", "agent.json"], /is not a module/],
    [["send", url, "hi", "there"], /there are 3 arguments, and parley send takes 2: <url> \[text\]. A text with/],
    [["send", url, "hi", "--file"], /--file <file> has no value/],
    [
      ["send", url, "hi", "--credential-origin", "api"],
      /--credential-origin <origin> cannot be "api": it is not an http/,
    ],
    [["send", url, "hi", "--extension", "a,b"], /--extension <uri> cannot be "a,b": a URI has no commas/],
    [["send", "a\nb", "hi"], /^parley: <url> cannot be "a\\nb": it is not an http or https URL\n$/],
    [["listen", url, "t", "--port", "x"], /--port <port> cannot be "x": it is not a whole number from 0 to 65535\n/],
    [["card", "verify", "card.json"], /--keys <place> is missing\nUsage: parley card verify/],
    [["card", "verify", "https://", "--keys", "keys.json"], /cannot read keys.json/],
    [["card", "lint", "https://"], /<card> cannot be "https:\/\/": it is not a URL/],
    [["card", "verify", "card.json", "--keys", "https://"], /--keys <place> cannot be "https:\/\/": it is not a URL/],
    [["key", "secret"], /there is 1 argument, and parley key takes none/],
    [["logout"], /give either \[url\], the URL of an agent, or --all/],
    [["conform", url, "--webhook", "https://me"], /--webhook <url> cannot be "https:\/\/me": it is not an http URL/],
    [["conform", url, "--protocol", "9"], /no test is left: look at --filter, --tag, --level or --protocol/],
    [["conform", url, "--other-token", "a b"], /--other-token <token> holds characters/],
    [["conform", url, "--var", "x"], /--var <name=value> cannot be "x"/],
    [["serve", "agent.ts", "--api-key", "ä"], /--api-key <key> must be TOKEN or TOKEN=SUBJECT/],
  ])("%j", async (argv, message) => {
    const { code, out, err } = await result(...argv);
    expect(err).not.toMatch(/command-argument|argument missing/);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });
});

test("a mistake is named as the help names it: every argument and every option of every command", async () => {
  const { io, out } = recordedIo();
  const program = createProgram(io, () => undefined);
  const all = program.commands.flatMap((command) => [command, ...command.commands]);
  const named = all.filter(({ registeredArguments: [first] }) => first?.required === true);
  expect(named.length).toBeGreaterThan(10);
  for (const command of named) {
    const words = command.parent === program ? [command.name()] : [command.parent?.name() ?? "", command.name()];
    const { err } = await result(...words, ...mandatory(command));
    const first = command.registeredArguments[0]?.name() ?? "";
    expect(err).toMatch(new RegExp(`^parley: <${first}> is missing\\nUsage: parley ${words.join(" ")} .*<${first}>`));
  }
  for (const command of all) {
    const words = command.parent === program ? [command.name()] : [command.parent?.name() ?? "", command.name()];
    for (const option of command.options.filter(({ required }) => required)) {
      const { err } = await result(...words, option.long ?? "");
      expect(err).toBe(`parley: ${option.flags} has no value\n`);
    }
  }
  expect(out()).toBe("");
});

/** The options that a command cannot do without, so that its arguments are looked at. */
function mandatory(command: Command): readonly string[] {
  return command.options.filter((option) => option.mandatory).flatMap(({ long }) => [long ?? "", "x"]);
}

describe("help and version are answers, so they end with 0 on standard output", () => {
  test.each([["--help"], ["help"], ["send", "--help"], ["help", "send"], ["--version"]])(
    "parley %s %s",
    async (...argv) => {
      const { code, out, err } = await result(...argv.filter((word) => word !== undefined));
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(argv[0] === "--version" ? /^\d+\.\d+\.\d+\n$/ : /^Usage: parley/);
    },
  );
});

describe("a time", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");

  test("is ISO 8601, or how long ago", () => {
    expect(timeAt("2026-01-31T12:00Z", now)).toBe("2026-01-31T12:00:00.000Z");
    expect(timeAt("90s", now)).toBe("2026-01-31T11:58:30.000Z");
    expect(timeAt("2h", now)).toBe("2026-01-31T10:00:00.000Z");
    expect(timeAt("1w", now)).toBe("2026-01-24T12:00:00.000Z");
  });

  test("that lies beyond all calendars is none", () => {
    expect(() => timeAt("99999999999w", now)).toThrow(/neither a time/);
  });
});
