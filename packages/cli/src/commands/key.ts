import { randomBytes } from "node:crypto";
import { jsonLine } from "@parley/a2a/internal/base/display";
import { answerTo } from "../ask.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import type { Program } from "../options.ts";

export function addKey({ io, command, finish }: Program): void {
  command("key", {
    summary: "Make an API key or a token, or the hash of a secret",
    description:
      "A server needs the hash alone: in apiKey(), bearer() and basic(), and in the environment of parley serve. Secrets are typed, or read from standard input.",
    examples: ["parley key", "echo s3cret | parley key --hash", "echo s3cret | parley key --password"],
  })
    .option("--hash", "the hash of a key or a token that you have")
    .option("--password", "the hash of a password, for HTTP Basic")
    .option("--json", "print only JSON to standard output, one document a line")
    .action(async (options: KeyOptions) => finish(await key(io, options)));
}

interface KeyOptions {
  readonly hash?: boolean;
  readonly password?: boolean;
  readonly json?: boolean;
}

async function key(io: Io, { hash, password, json }: KeyOptions): Promise<number> {
  if (hash === true && password === true) throw new UsageError("give either --hash or --password");
  // Loaded only on request: it is for servers.
  const { hashKey, hashPassword } = await import("@parley/a2a/auth");
  let made: Readonly<Record<string, string>>;
  if (password === true) made = { hash: await hashPassword(await answerTo(io, "Password: ", true)) };
  else if (hash === true) made = { hash: await hashKey(await answerTo(io, "Key: ", true)) };
  else {
    const fresh = randomBytes(32).toString("base64url");
    made = { key: fresh, hash: await hashKey(fresh) };
  }
  const text = Object.entries(made).map(([name, value]) => (made["key"] === undefined ? value : `${name}  ${value}`));
  io.stdout.write(json === true ? `${jsonLine(made)}\n` : `${text.join("\n")}\n`);
  return 0;
}
