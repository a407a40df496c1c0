import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { CallOptions } from "./connection.ts";
import { commandLine, quote } from "./invocation.ts";

/** Command lines that continue a task, to be copied. */
export interface Hints {
  /** Answers a question of the agent. */
  answer(taskId: string): string;
  /** Answers a form of the agent with sample data. */
  fill(taskId: string, sample: JsonValue | undefined): string;
  watch(taskId: string): string;
  /** Saves the files of a task. */
  save(taskId: string): string;
  cancel(taskId: string): string;
  list(): string;
}

interface HintOptions {
  readonly out?: string;
}

/** Command lines without secrets: a token becomes `$PARLEY_TOKEN`, a header value `…`. */
export function hintsFor(url: string, options: CallOptions & HintOptions, program = "parley"): Hints {
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
