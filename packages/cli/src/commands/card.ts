import { jsonLine } from "@parley/a2a/internal/base/display";
import { Option } from "commander";
import { open, type CallOptions } from "../connection.ts";
import type { Io } from "../io.ts";
import { agentUrl, callOptions, collect, url, type Program } from "../options.ts";
import { showCard } from "../output/card.ts";
import { styleFor } from "../output/text.ts";
import type { KeyOptions, SignOptions, VerifyOptions } from "../signing.ts";

export function addCard(program: Program): void {
  const { command } = program;
  const card = command("card", {
    summary: "Show an agent's card, check it, sign it",
    description: "parley card URL is short for parley card show URL.",
    examples: ["parley card http://localhost:4000", "parley card verify signed.json --keys card-keys.json"],
  });
  addShow(program, card);
  addVerify(program, card);
  addLint(program, card);
  addSign(program, card);
  addCardKey(program, card);
}

type Parent = ReturnType<Program["command"]>;

function addShow({ io, command, finish }: Program, card: Parent): void {
  callOptions(
    command(
      "show",
      {
        summary: "Show an agent's card",
        description: "What the agent can do, and how to reach it.",
        examples: ["parley card show http://localhost:4000", "parley card http://localhost:4000 --json"],
      },
      card,
      { isDefault: true },
    ).argument(...url),
  ).action(async (at: string, options: CallOptions) => finish(await show(io, at, options)));
}

async function show(io: Io, at: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  io.stdout.write(
    options.json === true ? `${jsonLine(client.card)}\n` : showCard(client.card, styleFor(io.stdout, io.env)),
  );
  return 0;
}

function addVerify({ io, command, finish }: Program, card: Parent): void {
  callOptions(
    command(
      "verify",
      {
        summary: "Verify the signatures of a card",
        description:
          "Exits with 0 if a key that you trust has signed it, otherwise with 1. A card cannot name the keys that are trusted.",
        examples: [
          "parley card verify signed.json --keys card-keys.json",
          "parley card verify signed.json --keys card-keys.json --json",
        ],
      },
      card,
    )
      .argument("<card>", "the agent's base URL, that of its card, or a file")
      .requiredOption("--keys <place>", "the keys that you trust: a file or a URL with a key set; repeatable", collect),
  ).action(async (at: string, options: VerifyOptions) => {
    // Loaded here, so that other commands start without it.
    const { verify } = await import("../signing.ts");
    finish(await verify(io, at, options));
  });
}

function addLint({ io, command, finish }: Program, card: Parent): void {
  callOptions(
    command(
      "lint",
      {
        summary: "Find what is wrong with a card",
        description:
          "What breaks the specification is an error; what works, but not for all or not as it seems, is a warning. Exits with 1 if there is an error.",
        examples: ["parley card lint http://localhost:4000", "parley card lint card.json --json"],
      },
      card,
    ).argument("<card>", "the agent's base URL, that of its card, or a file; - reads it from standard input"),
  ).action(async (at: string, options: CallOptions) => {
    const { lint } = await import("../signing.ts");
    finish(await lint(io, at, options));
  });
}

function addSign({ io, command, finish }: Program, card: Parent): void {
  command(
    "sign",
    {
      summary: "Sign a card",
      description:
        "Writes the signed card to standard output. Signatures of other keys stay. Sign again after every change of the card.",
      examples: [
        "parley card sign card.json --key card-key.json > signed.json",
        "parley card sign card.json --key card-key.json --jku http://localhost:4000/keys.json",
      ],
    },
    card,
  )
    .argument("<file>", "the card as JSON; - reads it from standard input")
    .requiredOption("--key <file>", "a private key, as parley card key makes it; repeatable", collect)
    .option("--jku <url>", "URL of the public keys, as a hint for readers", agentUrl)
    .option("--reduced", "also sign what the SDKs of JavaScript and Python read, where they drop something of the card")
    .action(async (file: string, options: SignOptions) => {
      const { sign } = await import("../signing.ts");
      finish(await sign(io, file, options));
    });
}

function addCardKey({ io, command, finish }: Program, card: Parent): void {
  command(
    "key",
    {
      summary: "Make a key that signs cards",
      description:
        "Writes the private key to a new file that only you may read, and the key set to publish to standard output.",
      examples: ["parley card key new-key.json > new-keys.json"],
    },
    card,
  )
    .argument("<file>", "the file for the private key; it must not exist")
    .addOption(
      new Option("--algorithm <name>", "algorithm of the signatures")
        .choices(["ES256", "EdDSA", "RS256"])
        .default("ES256"),
    )
    .action(async (file: string, options: KeyOptions) => {
      const { makeKey } = await import("../signing.ts");
      finish(await makeKey(io, file, options));
    });
}
