import { readFileSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { line } from "@parley/a2a/internal/base/display";
import type { JsonValue } from "@parley/a2a/internal/model/index";

/* Command lines: how this program was started, and commands to suggest to the user. */

const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Version of this package; all packages of Parley share it. */
export const version: string =
  typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "0.0.0";

/** How this program was started. */
export interface Invocation {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `process.argv[1]`. */
  readonly script: string;
  /** `process.execArgv`. */
  readonly execArgv: readonly string[];
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
}

/** How package managers run a script, an installed program, and a fetched one. */
const managers: Readonly<Record<string, readonly [run: string, installed: string, fetched: string]>> = {
  npm: ["npm run --silent NAME --", "npx parley", "npx @parley/cli"],
  pnpm: ["pnpm --silent NAME", "pnpm exec parley", "pnpm dlx @parley/cli"],
  yarn: ["yarn run NAME", "yarn parley", "yarn dlx @parley/cli"],
  bun: ["bun run --silent NAME", "bunx parley", "bunx @parley/cli"],
};

/**
 * The command that runs this program again, for hints: `parley` if it is in PATH, otherwise what the user typed, such as an npm script,
 * `npx parley` or a path.
 */
export function programFor(invocation: Invocation): string {
  const { env, script, platform } = invocation;
  const isBin = /^parley(?:\.(?:cmd|exe|ps1))?$/.test(basename(script));
  const manager = managers[/^(npm|pnpm|yarn|bun)\//.exec(env["npm_config_user_agent"] ?? "")?.[1] ?? ""];
  const installed = isBin || script.includes(`${sep}@parley${sep}cli${sep}`);
  if (manager !== undefined) {
    const [run, exec, fetched] = manager;
    const name = env["npm_lifecycle_event"];
    if (name !== undefined && isScript(invocation, name)) return run.replace("NAME", quote(name));
    // Package managers keep fetched programs in these folders.
    if (/[/\\](?:_npx|dlx(?:-[^/\\]*)?|bunx-[^/\\]*)[/\\]/.test(script)) return fetched;
    if (installed) return exec;
  }
  if (isBin && platform !== "win32") return isFound(invocation) ? "parley" : typed(invocation);
  if (isBin || script.includes(`${sep}node_modules${sep}@parley${sep}`)) return "npx parley";
  const runner = invocation.execArgv.some((word) => /[/\\]tsx[/\\]/.test(word)) ? "npx tsx" : "node";
  return `${runner} ${quote(shortest(invocation))}`;
}

/** Whether an npm script runs only this program, so that arguments can follow. */
function isScript({ env, script }: Invocation, name: string): boolean {
  const manifest = env["npm_package_json"];
  if (manifest === undefined) return false;
  try {
    const { scripts = {} } = JSON.parse(readFileSync(manifest, "utf8")) as { scripts?: Record<string, string> };
    const [, program] = /^(?:(?:node|tsx|npx|bun)\s+)?(\S+)$/.exec(scripts[name]?.trim() ?? "") ?? [];
    if (program === undefined) return false;
    return /^parley(?:\.\w+)?$/.test(basename(program)) || resolve(dirname(manifest), program) === script;
  } catch {
    return false;
  }
}

function isFound({ env, script }: Invocation): boolean {
  return (env["PATH"] ?? "").split(delimiter).some((folder) => folder !== "" && resolve(folder) === dirname(script));
}

function typed(invocation: Invocation): string {
  const path = shortest(invocation);
  return quote(isAbsolute(path) || path.startsWith(".") ? path : `./${path}`);
}

function shortest({ script, cwd }: Invocation): string {
  const path = relative(cwd, script);
  return path.length < script.length && !isAbsolute(path) ? path : script;
}

/**
 * Quotes a word for a POSIX shell. IDs come from the agent: without quotes, a copied command could run the agent's code.
 */
export function quote(word: string): string {
  // Not truncated, because the command must work.
  const shown = line(word, Number.POSITIVE_INFINITY);
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`;
}

export function commandLine(words: readonly string[]): string {
  return words.map(quote).join(" ");
}

/** Command lines that continue a task, to be copied. */
export interface Hints {
  /** Answers a question of the agent. */
  answer(taskId: string): string;
  /** Answers a form of the agent with sample data. */
  fill(taskId: string, sample: JsonValue | undefined): string;
  watch(taskId: string): string;
  save(taskId: string): string;
  cancel(taskId: string): string;
  list(): string;
}

/** Options of a command that its hints repeat. */
interface HintOptions {
  readonly token?: string;
  readonly header?: readonly string[];
  readonly credentialOrigin?: readonly string[];
  readonly extension?: readonly string[];
  readonly binding?: string;
  readonly out?: string;
}

/** Command lines without secrets: a token becomes `$PARLEY_TOKEN`, a header value `…`. */
export function hintsFor(url: string, options: HintOptions, program = "parley"): Hints {
  const flags = [
    ...(options.token === undefined ? [] : ['--token "$PARLEY_TOKEN"']),
    ...(options.header ?? []).map((text) => `--header ${quote(`${text.slice(0, text.indexOf(":"))}: …`)}`),
    ...(options.credentialOrigin ?? []).map((origin) => `--credential-origin ${quote(origin)}`),
    ...(options.extension ?? []).map((uri) => `--extension ${quote(uri)}`),
    ...(options.binding === undefined ? [] : [`--binding ${quote(options.binding)}`]),
  ];
  const make = (command: string, ...words: readonly string[]): string =>
    [program, command, ...flags, ...words].join(" ");
  // A leading dash would make an ID an option.
  const at = (taskId: string): string => commandLine(taskId.startsWith("-") ? ["--", url, taskId] : [url, taskId]);
  const out = options.out === undefined ? [] : [`--out ${quote(options.out)}`];
  const sendTo = (taskId: string, what: string): string => {
    const task = taskId.startsWith("-") ? `--task=${quote(taskId)}` : `--task ${quote(taskId)}`;
    return make("send", ...out, quote(url), task, what);
  };
  return {
    answer: (taskId) => sendTo(taskId, '"your answer"'),
    fill: (taskId, sample) =>
      sendTo(taskId, `--data ${sample === undefined ? "form.json" : quote(JSON.stringify(sample))}`),
    watch: (taskId) => make("watch", ...out, at(taskId)),
    save: (taskId) => make("task", "--out files", at(taskId)),
    cancel: (taskId) => make("cancel", at(taskId)),
    list: () => make("tasks", quote(url)),
  };
}
