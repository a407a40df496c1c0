import { describe, expect, test } from "vitest";
import { run } from "../src/program.ts";
import { timeOption } from "../src/options.ts";
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
    [["card"], /missing required argument 'url'/],
    [["card", url, "more"], /too many arguments/],
    [["card", "localhost:4000"], /not an http or https URL; did you mean http:\/\/localhost:4000/],
    [["card", "ftp://x"], /not an http or https URL/],
    [["card", url, "--binding", "SMTP"], /Allowed choices are JSONRPC, HTTP\+JSON/],
    [["card", url, "--header", "nonsense"], /not "Name: value"/],
    [["card", url, "--header", "a: b\nc: d"], /not "Name: value"/],
    [["card", url, "--header", "a: \u2713"], /not "Name: value"/],
    [["card", url, "--token", "two words"], /no header can carry/],
    [["send", url], /nothing to send/],
    [["send", url, ""], /nothing to send/],
    [["send", url, "hi", "--shout"], /unknown option '--shout'/],
    [["send", url, "hi", "--file", "https://"], /not a URL/],
    [["send", url, "hi", "--file", "no-such-file.csv"], /cannot read no-such-file.csv: no such file/],
    [["watch", url], /missing required argument 'task'/],
    [["tasks", url, "--state", "sleeping"], /Known states: submitted, working/],
    [["tasks", url, "--since", "yesterday"], /neither a time/],
    [["tasks", url, "--limit", "0"], /whole number, at least 1/],
    [["tasks", url, "--limit", "-5"], /whole number/],
    [["task", url, "id", "--history", "1.5"], /whole number/],
    [["serve"], /missing required argument 'file'/],
    [["serve", "agent.ts", "--port", "70000"], /from 0 to 65535/],
    [["serve", "agent.ts", "--token", "ä"], /SECRET or SECRET=SUBJECT/],
    [["serve", "agent.ts", "--host", "0.0.0.0"], /Set --token, --api-key or --issuer for callers, or --insecure/],
    [["serve", "agent.ts", "--host", "0.0.0.0", "--insecure"], /--public-url/],
    [
      ["serve", "agent.ts", "--host", "0.0.0.0", "--token", "s3cret", "--public-url", "https://agent.example"],
      /--tls-cert and --tls-key, or --trust-proxy/,
    ],
    [["serve", "agent.ts", "--tls-cert", "cert.pem"], /--tls-cert and --tls-key go together/],
    [["serve", "no-such.ts"], /cannot read no-such.ts: no such file/],
    [["serve", "agent.json"], /is not a module/],
  ])("%j", async (argv, message) => {
    const { code, out, err } = await result(...argv);
    expect(err).toMatch(message);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });
});

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
    expect(timeOption("2026-01-31T12:00Z", now)).toBe("2026-01-31T12:00:00.000Z");
    expect(timeOption("90s", now)).toBe("2026-01-31T11:58:30.000Z");
    expect(timeOption("2h", now)).toBe("2026-01-31T10:00:00.000Z");
    expect(timeOption("1w", now)).toBe("2026-01-24T12:00:00.000Z");
  });

  test("that lies beyond all calendars is none", () => {
    expect(() => timeOption("99999999999w", now)).toThrow(/neither a time/);
  });
});
