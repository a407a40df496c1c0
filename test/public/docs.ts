import type { Declaration, TSType } from "oxc-parser";
import type { Declarations, Exported, Module } from "./entries.ts";

/** A public name or one of its members, with its documentation comment, or `undefined` if there is no comment. */
export interface Documented {
  /** The path of the name, for example `Turn.reply` for a member. */
  readonly name: string;
  readonly doc: string | undefined;
}

interface Placed {
  readonly start: number;
}

/** Returns an exported name and each public member of it. All of them must be documented. */
export function documentedOf(declarations: Declarations, exported: Exported): readonly Documented[] {
  const { module, name } = exported;
  const own = exported.declarations
    .map(({ statement }) => docBefore(module, statement))
    .find((doc) => doc !== undefined);
  const found = new Map<string, string | undefined>([[name, own]]);
  for (const { node } of exported.declarations) {
    for (const member of membersOf(declarations, module, node)) {
      const path = `${name}.${member.name}`;
      // One comment is enough for all overloads, and for a getter with its setter.
      found.set(path, found.get(path) ?? member.doc);
    }
  }
  return [...found].map(([path, doc]) => ({ name: path, doc }));
}

/** Returns the documentation comment directly before a node. */
function docBefore({ source, comments }: Module, { start }: Placed): string | undefined {
  const before = comments.findLast(({ end }) => end <= start);
  if (before === undefined || !before.value.startsWith("*")) return undefined;
  return source.slice(before.end, start).trim() === "" ? before.value : undefined;
}

function membersOf(declarations: Declarations, module: Module, node: Declaration): readonly Documented[] {
  switch (node.type) {
    case "TSInterfaceDeclaration": {
      const inherited = node.extends.flatMap(({ expression }) =>
        expression.type === "Identifier" ? inheritedFrom(declarations, module, expression.name) : [],
      );
      return [...inherited, ...signatures(module, node.body.body)];
    }
    case "ClassDeclaration":
      return signatures(module, node.body.body);
    case "TSTypeAliasDeclaration":
      return inType(module, node.typeAnnotation);
    default:
      return [];
  }
}

/** Returns the members of an unexported interface that an exported interface extends. */
function inheritedFrom(declarations: Declarations, module: Module, name: string): readonly Documented[] {
  const base = declarations.resolve(module, name);
  return base?.declarations.flatMap(({ node }) => membersOf(declarations, base.module, node)) ?? [];
}

/** Returns the members of the object types in a type alias, including object types in unions and intersections. */
function inType(module: Module, type: TSType): readonly Documented[] {
  switch (type.type) {
    case "TSTypeLiteral":
      return signatures(module, type.members);
    case "TSUnionType":
    case "TSIntersectionType":
      return type.types.flatMap((one) => inType(module, one));
    case "TSParenthesizedType":
      return inType(module, type.typeAnnotation);
    default:
      return [];
  }
}

interface Signature extends Placed {
  readonly type: string;
  readonly key?: { readonly type: string; readonly name?: unknown; readonly value?: unknown } | null;
  readonly accessibility?: string | null;
  readonly computed?: boolean;
  readonly typeAnnotation?: { readonly typeAnnotation: { readonly type: string } } | null;
}

function signatures(module: Module, nodes: readonly Signature[]): readonly Documented[] {
  return nodes.flatMap((node) => {
    const { key, accessibility } = node;
    if (key === null || key === undefined || key.type === "PrivateIdentifier" || accessibility === "private") return [];
    // `text?: never` needs no comment: the member exists only so that the compiler can distinguish the members of a union.
    if (node.typeAnnotation?.typeAnnotation.type === "TSNeverKeyword") return [];
    const name =
      node.computed === true && key.type !== "Literal" ? `[${textAt(module, key)}]` : String(key.name ?? key.value);
    return [{ name, doc: docBefore(module, node) }];
  });
}

function textAt({ source }: Module, node: object): string {
  const { start, end } = node as { readonly start: number; readonly end: number };
  return source.slice(start, end);
}
