import type { Argument, Command } from "commander";

/* The mistakes on a command line that commander finds, in the words of the help: `<url>`, `[task]`, `--port <port>`. */

/** A message of commander, and what is said in its place. */
type Wording = readonly [pattern: RegExp, say: (match: readonly string[], command: Command) => string];

const wordings: readonly Wording[] = [
  [
    /^command-argument value '([^]*)' is invalid for argument '([^']+)'\. ([^]*)$/,
    ([, value = "", name = "", why = ""], command) => invalid(argumentNamed(name, command), value, why),
  ],
  [
    /^option '([^']+)' argument '([^]*)' is invalid\. ([^]*)$/,
    ([, flags = "", value = "", why = ""]) => invalid(flags, value, why),
  ],
  [
    /^missing required argument '([^']+)'$/,
    ([, name = ""], command) => `${argumentNamed(name, command)} is missing\n${usageOf(command)}`,
  ],
  [/^option '([^']+)' argument missing$/, ([, flags = ""]) => `${flags} has no value`],
  [
    /^required option '([^']+)' not specified$/,
    ([, flags = ""], command) => `${flags} is missing\n${usageOf(command)}`,
  ],
  [
    /^too many arguments(?: for '[^']+')?\. Expected (\d+) arguments? but got (\d+)\.$/,
    ([, expected, got], command) =>
      `there ${got === "1" ? "is 1 argument" : `are ${got} arguments`}, and ${takes(expected, command)}\n${usageOf(command)}`,
  ],
];

/** What is said of a mistake. `text`: what commander says of it, with or without its `error: `. */
export function mistake(text: string, command: Command): string {
  const said = text.trimEnd().replace(/^error: /, "");
  for (const [pattern, say] of wordings) {
    const match = pattern.exec(said);
    if (match !== null) return `${say(match, command)}\n`;
  }
  return `${said}\n`;
}

function invalid(name: string, value: string, why: string): string {
  // The reasons are sentences for `InvalidArgumentError`.
  const reason = why.replace(/\.$/, "").replace(/^[A-Z]/, (letter) => letter.toLowerCase());
  return `${name} cannot be ${JSON.stringify(value)}: ${reason}`;
}

function argumentNamed(name: string, command: Command): string {
  const argument = command.registeredArguments.find((each) => each.name() === name);
  return argument === undefined ? name : shown(argument);
}

/** An argument as the usage shows it. */
function shown(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

function takes(expected: string | undefined, command: Command): string {
  const names = command.registeredArguments.map(shown);
  if (names.length === 0) return `${nameOf(command)} takes none`;
  return `${nameOf(command)} takes ${expected}: ${names.join(" ")}. A text with spaces needs quotes`;
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function usageOf(command: Command): string {
  return `Usage: ${nameOf(command)} ${command.usage()}`;
}
