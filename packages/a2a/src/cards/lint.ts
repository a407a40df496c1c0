import { agentCardSchema, check } from "../model/index.ts";
import { isObject, type Schema } from "../model/schema.ts";
import { signableForms, versionsOf, strayMembers, type CardForm } from "./canonical.ts";
import { viewOf, type CardView, type Found } from "./lint-view.ts";
import type { CardFinding } from "./port.ts";
import { plain } from "../base/display.ts";
import { isLoopback } from "../base/index.ts";
import { addressKind } from "../net/index.ts";
import { readHeader } from "./sign.ts";
import { strictCardV03 } from "./strict-v03.ts";

/** Maximum number of findings, so that a hostile card cannot fill the screen. */
const maxFindings = 100;

/**
 * Finds problems of a card of 1.0, of 0.3, or of both. Problems are violations of the specification, and values that only some
 * readers accept or that have a surprising effect.
 *
 * @param card - The card, parsed from JSON.
 * @returns Every finding, errors first. If there are more than 100, the last finding has the number of omitted findings.
 *
 * @example
 * ```ts
 * for (const { level, field, message } of lintCard(client.card)) console.log(`${level} ${field}: ${message}`);
 * ```
 */
export function lintCard(card: unknown): readonly CardFinding[] {
  if (!isObject(card) || Array.isArray(card))
    return [{ level: "error", field: "", message: "A card must be an object" }];
  const versions = intendedVersions(card);
  if (versions.length === 0)
    return [{ level: "error", field: "", message: "The card has neither supportedInterfaces (1.0) nor url (0.3)" }];
  const form = formFindings(card, versions);
  const findings = [...form, ...memberFindings(card, versions), ...readingFindings(card)];
  const view = viewOf(card);
  const known = new Set(form.map(({ field }) => field));
  // A member of a wrong type needs no second finding about its content.
  for (const rule of rules) findings.push(...rule(view).filter(({ field }) => field === "" || !known.has(field)));
  const weight = ({ level }: CardFinding): number => (level === "error" ? 0 : 1);
  findings.sort((one, other) => weight(one) - weight(other));
  return findings.length <= maxFindings ? findings : [...findings.slice(0, maxFindings - 1), more];
}

const more: CardFinding = {
  level: "warning",
  field: "",
  message: `Only the first ${maxFindings - 1} findings are listed`,
};

type Json = Readonly<Record<string, unknown>>;

/** The versions of a card. A card without a URL is recognized by other members of its version. */
function intendedVersions(card: Json): readonly CardForm["version"][] {
  const versions = versionsOf(card);
  if (versions.length > 0) return versions;
  if ("supported_interfaces" in card) return ["1.0"];
  const isOld = ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"].some(
    (name) => name in card,
  );
  return isOld ? ["0.3"] : [];
}

function formFindings(card: Json, versions: readonly CardForm["version"][]): CardFinding[] {
  const findings = versions.flatMap((version) => {
    // The first version checks members that both versions have.
    const schema: Schema<unknown> = version === "1.0" ? agentCardSchema : strictCardV03;
    const checked = check(schema, cloned(card), "copy", maxFindings + 1);
    return checked.ok ? [] : checked.violations;
  });
  const first = findings.filter(({ field }, at) => findings.findIndex((other) => other.field === field) === at);
  return [
    ...first.map(({ field, description }): CardFinding => ({ level: "error", field, message: description })),
    ...(versions.includes("0.3") && card["protocolVersion"] === undefined ? [withoutVersion] : []),
  ];
}

const withoutVersion: CardFinding = {
  level: "warning",
  field: "protocolVersion",
  message: "A card of 0.3 must have this member (0.3 §5.5). Without it, readers treat the card as 0.2.5",
};

/** A copy, because the check may change it. A value that cannot be copied is not from JSON. */
function cloned(card: object): unknown {
  try {
    return structuredClone(card);
  } catch {
    return card;
  }
}

/** Members that the versions of the card do not define, at any depth. */
function memberFindings(card: Json, versions: readonly CardForm["version"][]): CardFinding[] {
  return strayMembers(card, versions).map(({ field: path, readAs }) => {
    const field = path.slice(0, 200);
    if (readAs === undefined)
      return { level: "warning", field, message: "The version of this card does not define this member" };
    const message = `Some readers treat this member as ${readAs}, others ignore it. Write ${readAs} (A2A 1.0 §5.5)`;
    return { level: "error", field, message };
  });
}

function readingFindings(card: Readonly<Record<string, unknown>>): CardFinding[] {
  if (!versionsOf(card).includes("1.0")) return [];
  try {
    const { specification, reduced, same } = signableForms(card, "1.0");
    if (same || specification === reduced) return [];
  } catch (thrown) {
    return [
      { level: "error", field: "", message: thrown instanceof Error ? thrown.message : "The card cannot be signed" },
    ];
  }
  const message =
    "The SDKs of JavaScript and Python omit empty values from the signed text, such as a requirement without scopes or a scheme " +
    "without members. For them, a signature does not cover these (A2A 1.0 §8.4.1)";
  return [{ level: "warning", field: "", message }];
}

/* The rules of `lintCard`, in addition to the schema. */

type Rule = (view: CardView) => readonly CardFinding[];

const error = (field: string, message: string): CardFinding => ({ level: "error", field, message });
const warning = (field: string, message: string): CardFinding => ({ level: "warning", field, message });
const quoted = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

function repeated<T>(all: readonly Found<T>[], key: (value: T) => string): readonly Found<T>[] {
  const seen = new Set<string>();
  return all.filter(({ value }) => seen.has(key(value)) || !seen.add(key(value)));
}

const hostAndPort = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i;

/** Why clients on other machines cannot, or should not, call a URL. */
function urlFindings({ field, value }: Found<string>, isGrpc = false): readonly CardFinding[] {
  if (isGrpc && hostAndPort.test(value)) return [];
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return [error(field, `${quoted(value)} is not an absolute URL`)];
  if (!/^https?:$/.test(url.protocol)) return [error(field, `${quoted(value)} is neither an https: nor an http: URL`)];
  if (url.username !== "" || url.password !== "")
    return [error(field, "The URL contains a user name or password, which anyone can read")];
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const kind = addressKind(host);
  if (isLoopback(url.hostname))
    return [warning(field, "The URL is of a loopback address: only this machine can call it")];
  if (kind !== undefined && kind !== "global") return [warning(field, `The URL is of a ${kind} address`)];
  if (url.protocol === "http:")
    return [warning(field, "The URL has no TLS: the network can read credentials and messages (A2A 1.0 §7.1)")];
  return [];
}

const interfaces: Rule = ({ interfaces: all }) => [
  ...all.flatMap(({ field, value: { url, binding, version } }) => {
    const at = field === "url" ? field : `${field}.url`;
    const known = ["JSONRPC", "GRPC", "HTTP+JSON"].includes(binding);
    return [
      ...urlFindings({ field: at, value: url }, !["JSONRPC", "HTTP+JSON"].includes(binding)),
      ...(known || binding === "" || URL.canParse(binding)
        ? []
        : [warning(field, `${quoted(binding)} is not a core binding: name a custom one by a URI (A2A 1.0 §5.8)`)]),
      ...(/^\d+\.\d+(?:\.\d+)?$/.test(version) || version === ""
        ? []
        : [error(field, `${quoted(version)} is not a version, such as "1.0" (A2A 1.0 §3.6)`)]),
    ];
  }),
  ...repeated(all, (value) => JSON.stringify(value)).map(({ field }) =>
    warning(field, "The same interface is listed twice"),
  ),
];

const urls: Rule = (view) => view.urls.flatMap((each) => urlFindings(each));

const texts: Rule = (view) =>
  view.texts.flatMap(({ field, value }) => [
    ...(plain(value) === value
      ? []
      : [warning(field, "The text has control characters, or characters that hide or reorder text")]),
    ...(value.length <= 10_000 ? [] : [warning(field, `The text has ${value.length} characters. Readers cut it`)]),
  ]);

const mediaTypes: Rule = (view) =>
  view.mediaTypes
    .filter(({ value }) => !/^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+(?:\s*;.*)?$/.test(value))
    .map(({ field, value }) => warning(field, `${quoted(value)} is not a media type, such as "text/plain"`));

/** The scopes of a scheme, in the place that the version defines; `undefined` for schemes without scopes. */
function scopesOf(scheme: Readonly<Record<string, unknown>>): ReadonlySet<string> | undefined {
  const oauth = isObject(scheme["oauth2SecurityScheme"]) ? scheme["oauth2SecurityScheme"] : scheme;
  if (!isObject(oauth["flows"])) return undefined;
  const flows = Object.values(oauth["flows"]).filter(isObject);
  return new Set(flows.flatMap(({ scopes }) => (isObject(scopes) ? Object.keys(scopes) : [])));
}

const requirements: Rule = ({ requirements: all, schemes }) =>
  all.flatMap(({ field, value }) => [
    ...Object.entries(value).flatMap(([name, scopes]) => {
      const scheme = schemes.get(name);
      if (scheme === undefined)
        return [
          error(field, `The card declares no security scheme ${quoted(name)}: no caller can satisfy this requirement`),
        ];
      const known = scopesOf(scheme.value);
      const unknown = scopes.filter(
        (scope): scope is string => typeof scope === "string" && known?.has(scope) === false,
      );
      return unknown.map((scope) =>
        warning(field, `The flow of ${quoted(name)} does not list the scope ${quoted(scope)}`),
      );
    }),
    ...(Object.keys(value).length > 0 ? [] : [warning(field, "A requirement without schemes accepts every caller")]),
  ]);

const schemes: Rule = ({ requirements: all, schemes: declared, hasExtendedCard }) => {
  const used = new Set(all.flatMap(({ value }) => Object.keys(value)));
  return [
    ...[...declared].flatMap(([name, { field, value }]) => [
      ...(used.has(name) ? [] : [warning(field, "No requirement names this security scheme")]),
      ...(Object.keys(value).length > 0 ? [] : [warning(field, "The security scheme is empty or of an unknown kind")]),
      ...deprecatedFlows(field, value),
    ]),
    ...(hasExtendedCard && declared.size === 0
      ? [
          warning(
            "capabilities.extendedAgentCard",
            "Callers have to authenticate for the extended card, but no security scheme says how (A2A 1.0 §3.1.11)",
          ),
        ]
      : []),
  ];
};

function deprecatedFlows(field: string, scheme: Readonly<Record<string, unknown>>): readonly CardFinding[] {
  const oauth = isObject(scheme["oauth2SecurityScheme"]) ? scheme["oauth2SecurityScheme"] : scheme;
  const { flows } = oauth;
  if (!isObject(flows)) return [];
  return ["implicit", "password"]
    .filter((name) => flows[name] !== undefined)
    .map((name) =>
      warning(field, `The flow ${name} of OAuth is deprecated: use authorizationCode with PKCE (A2A 1.0 §4.5.7)`),
    );
}

const skills: Rule = ({ skills: all }) =>
  repeated(all, ({ id }) => JSON.stringify(id)).map(({ field, value: { id } }) =>
    error(`${field}.id`, `two skills have the id ${quoted(String(id))}`),
  );

const extensions: Rule = ({ extensions: all }) => [
  ...all
    .filter(({ value: { uri } }) => typeof uri !== "string" || !URL.canParse(uri))
    .map(({ field }) => warning(`${field}.uri`, "An extension is named by a URI (A2A 1.0 §4.6)")),
  ...repeated(all, ({ uri }) => JSON.stringify(uri)).map(({ field }) =>
    warning(field, "The same extension is declared twice"),
  ),
];

const signatures: Rule = (view) =>
  view.signatures.flatMap(({ field, value }) => {
    const header = isObject(value) ? readHeader(value["protected"]) : undefined;
    if (header === undefined) return [error(field, "The protected header cannot be read (A2A 1.0 §8.4.2)")];
    const { alg, kid, typ, jku } = header;
    return [
      ...(/^(?:none|HS\d+)$/.test(alg) ? [error(field, `A signature by ${alg} proves nothing`)] : []),
      ...(kid === undefined ? [error(field, "The protected header has no kid (A2A 1.0 §8.4.2)")] : []),
      ...(typ === "JOSE" ? [] : [warning(field, 'The protected header should have the typ "JOSE" (A2A 1.0 §8.4.2)')]),
      ...(jku === undefined ? [] : urlFindings({ field: `${field}.protected.jku`, value: jku })),
    ];
  });

const rules: readonly Rule[] = [
  interfaces,
  urls,
  texts,
  mediaTypes,
  requirements,
  schemes,
  skills,
  extensions,
  signatures,
];
