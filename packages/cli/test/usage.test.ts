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

describe("bad usage exits with 2, explains the mistake, and writes nothing to standard output", () => {
  test.each([
    [[], /Usage: parley/],
    [["dance"], /unknown command 'dance'/],
    [["crad", url], /Did you mean card/],
    [["ops", "lst"], /^parley: unknown command 'lst'\n\(Did you mean list\?\)\n$/],
    [["ops", "tasks"], /^parley: unknown command 'tasks'\n\(Did you mean list\?\)\n$/],
    [["push", "ls"], /\(Did you mean list\?\)/],
    [["list", url], /\(Did you mean tasks\?\)/],
    [["db", "xyz"], /^parley: unknown command 'xyz'\n\(parley db --help lists the commands\)\n$/],
    [["card"], /<url> is missing\nUsage: parley card show \[options\] <url>/],
    [["card", url, "more"], /parley card show takes 1 argument, <url> \(quote text with spaces\); got 2/],
    [
      ["card", "localhost:4000"],
      /^parley: <url> must be an http or https URL; got "localhost:4000". Did you mean http:\/\/localhost:4000\?\n$/,
    ],
    [["card", "ftp://x"], /must be an http or https URL/],
    [
      ["card", url, "--binding", "SMTP"],
      /^parley: --binding <name> must be one of JSONRPC, HTTP\+JSON, GRPC; got "SMTP"\n$/,
    ],
    [["card", url, "--header", "nonsense"], /must be "Name: value"/],
    [["card", url, "--header", "a: b\nc: d"], /must be "Name: value"/],
    [["card", url, "--header", "a: \u2713"], /must be "Name: value"/],
    [
      ["card", url, "--token", "two words"],
      /--token <token> must consist of printable ASCII characters without spaces/,
    ],
    [["send", url], /nothing to send/],
    [["send", url, ""], /nothing to send/],
    [["send", url, "hi", "--shout"], /unknown option '--shout'/],
    [["send", url, "hi", "--file", "https://"], /must be a valid URL/],
    [["send", url, "hi", "--file", "no-such-file.csv"], /cannot read no-such-file.csv: no such file/],
    [["watch", url], /<task> is missing\nUsage: parley watch/],
    [["tasks", url, "--state", "sleeping"], /--state <state> must be one of submitted, working/],
    [["tasks", url, "--since", "yesterday"], /must be a time/],
    [["tasks", url, "--limit", "0"], /whole number of at least 1/],
    [["tasks", url, "--limit", "-5"], /whole number/],
    [["task", url, "id", "--history", "1.5"], /whole number/],
    [["serve"], /<file> is missing\nUsage: parley serve/],
    [["serve", "agent.ts", "--port", "70000"], /from 0 to 65535/],
    [["serve", "agent.ts", "--token", "ä"], /--token <token> must be TOKEN or TOKEN=SUBJECT/],
    [
      ["serve", "agent.ts", "--host", "0.0.0.0"],
      /Pass --token, --api-key or --issuer to authenticate callers, or --insecure/,
    ],
    [["serve", "agent.ts", "--host", "0.0.0.0", "--insecure"], /--public-url/],
    [
      ["serve", "agent.ts", "--host", "0.0.0.0", "--token", "s3cret", "--public-url", "https://agent.example"],
      /--tls-cert and --tls-key, --trust-proxy/,
    ],
    [["serve", "agent.ts", "--tls-cert", "cert.pem"], /--tls-cert and --tls-key must be passed together/],
    [["serve", "no-such.ts"], /cannot read no-such.ts: no such file/],
    [["serve", "agent.json"], /is not a module/],
    [["send", url, "hi", "there"], /parley send takes 2 arguments, <url> \[text\] \(quote text with spaces\); got 3/],
    [["send", url, "hi", "--file"], /--file <file> needs a value/],
    [["send", url, "hi", "--credential-origin", "api"], /--credential-origin <origin> must be an http/],
    [["send", url, "hi", "--extension", "a,b"], /--extension <uri> must not contain commas or spaces; got "a,b"/],
    [["send", "a\nb", "hi"], /^parley: <url> must be an http or https URL; got "a\\nb"\n$/],
    [["listen", url, "t", "--port", "x"], /--port <port> must be a whole number from 0 to 65535; got "x"\n/],
    [["card", "verify", "card.json"], /--keys <place> is missing\nUsage: parley card verify/],
    [["card", "verify", "https://", "--keys", "keys.json"], /cannot read keys.json/],
    [["card", "lint", "https://"], /<card> must be a valid URL; got "https:\/\/"/],
    [["card", "verify", "card.json", "--keys", "https://"], /--keys <place> must be a valid URL; got "https:\/\/"/],
    [["key", "secret"], /parley key takes no arguments; got 1/],
    [["logout"], /pass either \[url\], the URL of an agent, or --all/],
    [["conform", url, "--webhook", "https://me"], /--webhook <url> must be an http URL/],
    [["conform", url, "--protocol", "9"], /no tests selected: check --filter, --tag, --level or --protocol/],
    [["conform", url, "--other-token", "a b"], /--other-token <token> must consist of printable/],
    [["conform", url, "--var", "x"], /--var <name=value> must be NAME=VALUE; got "x"/],
    [["serve", "agent.ts", "--api-key", "ä"], /--api-key <key> must be TOKEN or TOKEN=SUBJECT/],
  ])("%j", async (argv, message) => {
    const { code, out, err } = await result(...argv);
    expect(err).not.toMatch(/command-argument|argument missing/);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });
});

test("error messages name every argument and option as the help does", async () => {
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
      expect(err).toBe(`parley: ${option.flags} needs a value\n`);
    }
  }
  expect(out()).toBe("");
});

/** The options that a command requires, so its arguments are checked. */
function mandatory(command: Command): readonly string[] {
  return command.options.filter((option) => option.mandatory).flatMap(({ long }) => [long ?? "", "x"]);
}

describe("help and version exit with 0 on standard output", () => {
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

  test("beyond all calendars is rejected", () => {
    expect(() => timeAt("99999999999w", now)).toThrow(/must be a time/);
  });
});
