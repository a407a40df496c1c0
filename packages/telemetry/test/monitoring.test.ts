import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { describe, expect, test } from "vitest";
import { prometheus } from "../src/prometheus/index.ts";
import { lived, samples } from "./lived.ts";

/** The dashboard and alerts of deploy/monitoring are valid PromQL and use only metrics of `/metrics`. */

const root = join(import.meta.dirname, "../../..");
const folder = join(root, "deploy/monitoring");

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const dashboard = JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8")) as {
  readonly panels: readonly Panel[];
};
const alerts = parse(readFileSync(join(folder, "prometheus-alerts.yaml"), "utf8")) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = alerts.groups.flatMap((group) => group.rules);

const functions = ["sum", "max", "rate", "increase", "histogram_quantile", "by"];
const names = "[a-z_][a-z0-9_]*";

/** The tokens of an expression. Throws for text that is not PromQL. */
function tokensOf(expr: string): readonly string[] {
  const token = new RegExp(
    `\\s*(${names}|"[^"]*"|\\d+(?:\\.\\d+)?(?:e\\d+)?|\\[(?:\\d+[mh]|\\$__rate_interval)\\]|=~|!=|==|[=<>/*(){},])`,
    "gy",
  );
  const tokens: string[] = [];
  while (token.lastIndex < expr.length) {
    const at = token.lastIndex;
    const found = token.exec(expr);
    if (found === null) throw new Error(`Not PromQL at ${at}: ${expr}`);
    tokens.push(found[1] ?? "");
  }
  return tokens;
}

/** The selectors of an expression: metrics with the labels that they name, and the labels that it groups by. */
function readBy(expr: string) {
  const tokens = tokensOf(expr);
  const open: string[] = [];
  const metrics: { readonly name: string; readonly labels: string[] }[] = [];
  let by: string[] | undefined;
  const groups: string[] = [];
  for (const [at, token] of tokens.entries()) {
    if ("({".includes(token)) {
      open.push(token);
      if (tokens[at - 1] === "by") by = groups;
    } else if (")}".includes(token)) {
      expect([open.pop(), token], expr).toEqual([token === ")" ? "(" : "{", token]);
      by = undefined;
    } else if (new RegExp(`^${names}$`).test(token)) {
      if (open.at(-1) === "{") metrics.at(-1)?.labels.push(token);
      else if (by !== undefined) by.push(token);
      else if (["(", "by"].includes(tokens[at + 1] ?? "")) expect(functions).toContain(token);
      else metrics.push({ name: token, labels: [] });
    }
  }
  expect(open, expr).toEqual([]);
  return { metrics, groups };
}

const expressions = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
];

describe("deploy/monitoring", () => {
  test("queries only existing metrics and labels, and all metrics of the server", async () => {
    const metrics = prometheus();
    await lived(metrics);
    const keys = [...samples(await metrics.text()).keys()];
    const labelsOf = (name: string): ReadonlySet<string> | undefined => {
      const own = keys.filter((key) => key === name || key.startsWith(`${name}{`));
      const labels = own.flatMap((key) => [...key.matchAll(/([a-z_0-9]+)="/g)].map(([, label = ""]) => label));
      // Prometheus adds the label of the target.
      return own.length === 0 ? undefined : new Set([...labels, "instance"]);
    };
    const used = new Set<string>();
    for (const [where, expr] of expressions) {
      const { metrics: found, groups } = readBy(expr);
      expect(found.length, `${where}: ${expr}`).toBeGreaterThan(0);
      for (const { name, labels } of found) {
        const known = labelsOf(name);
        expect(known, `${where}: ${name}`).toBeDefined();
        for (const label of [...labels, ...groups]) expect(known, `${where}: ${name} has ${label}`).toContain(label);
        used.add(name.replace(/_(?:bucket|sum|count)$/, ""));
      }
    }
    const known = new Set(keys.map((key) => key.replace(/\{.*/, "").replace(/_(?:bucket|sum|count)$/, "")));
    const unused = [...known].filter((name) => !used.has(name) && !name.startsWith("a2a_client_response"));
    expect(unused).toEqual([]);
  });

  test("each alert has a summary and a command that helps, and only existing commands of parley", () => {
    const cli = readFileSync(join(root, "docs/cli.md"), "utf8");
    expect(rules.length).toBeGreaterThan(5);
    for (const { alert, annotations } of rules) {
      expect(annotations["summary"], alert).toMatch(/\w/);
      expect(annotations["command"], alert).toMatch(/\w/);
      for (const [, command = ""] of (annotations["command"] ?? "").matchAll(/\b(parley (?:db|push) [a-z]+)/g))
        expect(cli).toContain(`### ${command}\n`);
    }
  });

  test.each(["sum(parley_runs_active", "parley_runs_active }", "avg(parley_runs_active)", "a ? b"])(
    "the check refuses %s",
    (expr) => {
      expect(() => readBy(expr)).toThrow(/PromQL|expected/);
    },
  );
});
