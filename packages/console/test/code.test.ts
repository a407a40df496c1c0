import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { asCurl } from "../app/code.ts";

/** The words that a shell makes of a command. */
function words(command: string): readonly string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync("bash", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test("a request of a stranger's session file is one curl command, whatever its texts are", () => {
  const evil = "x'; echo pwned; '\n$(echo pwned)`echo pwned` \\ \u001b[201~\u0003\r";
  const request = { kind: "request", n: 1, exchange: 1, at: 0, agent: "a1" } as const;
  const body = { bytes: 1, text: evil };
  const hostile = { ...request, method: `POST; echo pwned`, url: `-o${evil}`, headers: [["x-a", evil]] as const, body };
  const command = asCurl(hostile);
  // eslint-disable-next-line no-control-regex
  expect(command).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
  expect(words(command)).toEqual([
    "--url",
    hostile.url,
    "-X",
    hostile.method,
    "-H",
    `x-a: ${evil}`,
    "--data-raw",
    evil,
  ]);
  const plain = asCurl({
    ...hostile,
    method: "PUT",
    url: "http://a/?b='c'",
    headers: [],
    body: { bytes: 2, text: "{}" },
  });
  expect(plain).toBe(`curl --url 'http://a/?b='\\''c'\\''' \\\n  -X PUT \\\n  --data-raw '{}'`);
});
