// Rules for oxlint: the table of scripts/layers.mjs, and words that names do not use.

import { violation } from "./layers.mjs";

/** Nodes of the syntax tree that name another module, also only for types. */
const nodes = [
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
];

const layering = {
  meta: { type: "problem" },
  /** @param {{ filename: string, report(problem: { node: unknown, message: string }): void }} context */
  create(context) {
    /** @param {{ source?: { value?: unknown } | null }} node */
    const check = (node) => {
      if (typeof node.source?.value !== "string") return;
      const message = violation(context.filename, node.source.value);
      if (message !== undefined) context.report({ node, message });
    };
    return Object.fromEntries(nodes.map((type) => [type, check]));
  },
};

const names = {
  meta: { type: "problem" },
  /** @param {{ report(problem: { node: unknown, message: string }): void }} context */
  create(context) {
    return {
      /** @param {{ name: string }} node */
      Identifier(node) {
        if (!/^(most|least)[A-Z]/.test(node.name)) return;
        context.report({ node, message: `${node.name}: a limit is called max… or min…, with its unit` });
      },
    };
  },
};

export default { meta: { name: "parley" }, rules: { layering, names } };
