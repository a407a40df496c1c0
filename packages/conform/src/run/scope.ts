import { defined } from "@parley/a2a/internal/base/defined";
import type { OpenStream } from "../call/caller.ts";
import { check, demand, Failed, show } from "../judge/assert.ts";
import type { CollectionMatch, Json, NamedAssertion, Step, Test } from "../acts/format.ts";
import { find, findAll, resolve } from "../acts/values.ts";
import { requiredExtensions, type Target } from "./target.ts";
import type { Inbox } from "../call/webhooks.ts";

interface Kept {
  readonly response?: Json;
  readonly captured: ReadonlyMap<string, Json>;
  readonly stream?: OpenStream;
}

/** What a step keeps for the steps after it. */
export interface Leaving {
  readonly response?: Json | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream?: OpenStream;
}

/** In a capture, what stands before the name of a header. */
const headerPath = "$headers.";

/** What the steps of one test can refer to: variables, and what earlier steps kept. */
export class Scope {
  readonly #test: Test;
  readonly #target: Target;
  readonly #inbox: Inbox | undefined;
  readonly #kept = new Map<string, Kept>();

  constructor(test: Test, target: Target, inbox: Inbox | undefined) {
    this.#test = test;
    this.#target = target;
    this.#inbox = inbox;
  }

  /** Closes the streams that are still open. */
  end(): void {
    for (const { stream } of this.#kept.values()) stream?.live.close();
  }

  resolve(value: Json): Json {
    return resolve(value, (name) => this.#lookup(name));
  }

  text(value: string): string {
    const found = this.resolve(value);
    return typeof found === "string" ? found : JSON.stringify(found);
  }

  response(stepId: string): Json | undefined {
    return this.#kept.get(stepId)?.response;
  }

  stream(stepId: string): OpenStream {
    const stream = this.#kept.get(stepId)?.stream;
    if (stream === undefined) throw new Error(`the step ${stepId} has opened no stream`);
    return stream;
  }

  keep(step: Step, { response, headers, stream }: Leaving): void {
    const captured = new Map<string, Json>();
    this.#kept.set(step.id, { captured, ...defined({ response, stream }) });
    for (const [name, path] of Object.entries(step.capture)) {
      const found = path.startsWith(headerPath) ? headers?.[path.slice(headerPath.length)] : find(response, path);
      if (found === undefined) {
        throw new Failed(`the answer has no ${path}`, { path, expected: "something", actual: show(response) });
      }
      captured.set(name, found);
    }
  }

  /** Checks an assertion on what earlier steps kept (ACTS §5.5). */
  demand({ source, path, match, any, all, none, description }: NamedAssertion): void {
    const value = this.resolve(source.includes("{{") ? source : `{{${source}}}`);
    const root = path === undefined ? value : find(value, path);
    if (match !== undefined) demand(check(this.resolve(match), root, path ?? ""), description);
    const judge = (collection: CollectionMatch, quantifier: "any" | "all" | "none"): void => {
      const wanted = this.resolve(collection.match);
      const found = findAll(root, collection.path);
      const wrong = found.map((one) => check(wanted, one, collection.path));
      const firstWrong = wrong.find((one) => one !== undefined);
      if (quantifier === "all") return demand(firstWrong, description);
      if (wrong.includes(undefined) === (quantifier === "any")) return;
      const expected = `${quantifier === "any" ? "one" : "none"} like ${show(wanted)}`;
      demand({ path: collection.path, expected, actual: show(found) }, description);
    };
    if (any !== undefined) judge(any, "any");
    if (all !== undefined) judge(all, "all");
    if (none !== undefined) judge(none, "none");
  }

  #lookup(name: string): Json | undefined {
    const dot = name.indexOf(".");
    const [head, rest] = dot === -1 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1)];
    const kept = this.#kept.get(head);
    if (kept !== undefined) return rest === "response" ? (kept.response ?? null) : kept.captured.get(rest);
    const { variables, env, card } = this.#target;
    if (Object.hasOwn(variables, name)) return variables[name];
    if (name === "webhookUrl" && this.#inbox !== undefined) return this.#inbox.url;
    // With a comma after each: the test appends its own extensions.
    if (name === "requiredExtensions")
      return requiredExtensions(card)
        .map((uri) => `${uri},`)
        .join("");
    const written = Object.hasOwn(this.#test.variables, name) ? this.#test.variables[name] : undefined;
    if (written !== undefined) return this.resolve(written);
    return head === "env" ? env[rest] : undefined;
  }
}
