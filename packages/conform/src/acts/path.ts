import type { Json } from "./format.ts";

const steps = /([^.[\]]+)|\[(\d+|\*)\]/g;

export function isMap(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member of an object, and nothing that it inherits: `constructor` is absent unless the JSON has it. */
export function member(value: Json | undefined, name: string): Json | undefined {
  return isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** All values at a path such as `a.b[0].c`; `[*]` stands for each element (ACTS §5.2). */
export function findAll(value: Json | undefined, path: string): readonly Json[] {
  let found = value === undefined ? [] : [value];
  for (const [, name, index] of path.matchAll(steps)) {
    found = found.flatMap((one): readonly Json[] => {
      if (name !== undefined) {
        const inside = member(one, name);
        return inside === undefined ? [] : [inside];
      }
      if (!Array.isArray(one)) return [];
      if (index === "*") return one as readonly Json[];
      const element = (one as readonly Json[])[Number(index)];
      return element === undefined ? [] : [element];
    });
  }
  return found;
}

export function find(value: Json | undefined, path: string): Json | undefined {
  return findAll(value, path)[0];
}

/** Evaluates `path == v`, `path != v` or `path in [v, …]` (ACTS §9.1). Throws where it is no such condition. */
export function holds(condition: string, value: Json | undefined): boolean {
  const [, path = "", operator, rest = ""] = /^(\S+)\s+(==|!=|in)\s+(\S.*)$/.exec(condition.trim()) ?? [];
  const found = find(value, path);
  const actual = found === undefined ? undefined : typeof found === "string" ? found : JSON.stringify(found);
  const literal = (text: string): string => text.trim().replace(/^(["'])(.*)\1$/, "$2");
  switch (operator) {
    case "==":
      return actual === literal(rest);
    case "!=":
      return actual !== literal(rest);
    case "in":
      return (
        actual !== undefined &&
        rest
          .replace(/^\[|\]$/g, "")
          .split(",")
          .map(literal)
          .includes(actual)
      );
    default:
      throw new Error(`"${condition}" is not a condition: path == value, path != value or path in [value, …]`);
  }
}
