import type { AgentCard, AgentInterface, AgentSkill, SecurityScheme } from "@parley/a2a/model";
import { line, plain } from "@parley/a2a/internal/base/display";
import { listed, longest, table, type Style } from "./text.ts";

/** What kind of scheme it is, in words. */
export function schemeKind(scheme: SecurityScheme | undefined): string {
  if (scheme?.httpAuthSecurityScheme !== undefined) return `HTTP ${scheme.httpAuthSecurityScheme.scheme}`;
  if (scheme?.apiKeySecurityScheme !== undefined) {
    return `API key in ${scheme.apiKeySecurityScheme.location} ${scheme.apiKeySecurityScheme.name}`;
  }
  if (scheme?.oauth2SecurityScheme !== undefined) {
    return `OAuth 2 (${Object.keys(scheme.oauth2SecurityScheme.flows).join(", ")})`;
  }
  if (scheme?.openIdConnectSecurityScheme !== undefined) return "OpenID Connect";
  if (scheme?.mtlsSecurityScheme !== undefined) return "mutual TLS";
  return "unknown";
}

function security(card: AgentCard): readonly string[] {
  return (card.securityRequirements ?? []).map((requirement) =>
    Object.entries(requirement.schemes ?? {})
      .map(([name, scopes]) => {
        const list = scopes.list ?? [];
        const wanted = list.length === 0 ? "" : `, scopes ${list.join(" ")}`;
        return `${name} (${schemeKind(card.securitySchemes?.[name])}${wanted})`;
      })
      .join(" and "),
  );
}

type Row = readonly [name: string, value: string];

/** Rows of a list: the first has its name, the others have `more`. */
function rowsOf<T>(name: string, entries: readonly T[], show: (entry: T) => string, more = ""): readonly Row[] {
  return listed(entries, show).map((text, i) => [i === 0 ? name : more, text]);
}

/** An agent card as readable text (A2A 1.0 §4.4.1). */
export function showCard(card: AgentCard, style: Style): string {
  const can = [
    card.capabilities.streaming === true ? "streaming" : undefined,
    card.capabilities.pushNotifications === true ? "push notifications" : undefined,
    card.capabilities.extendedAgentCard === true ? "extended card" : undefined,
  ].filter((word) => word !== undefined);
  const rows: Row[] = [
    ...rowsOf("interfaces", card.supportedInterfaces, showInterface),
    ["capabilities", can.length === 0 ? "none" : can.join(", ")],
    ["takes", card.defaultInputModes.join(", ")],
    ["gives", card.defaultOutputModes.join(", ")],
    ...rowsOf("security", security(card), (text) => text, "or"),
    ...rowsOf(
      "extensions",
      card.capabilities.extensions ?? [],
      ({ uri, required }) => `${uri ?? "?"}${required === true ? " (required)" : ""}`,
    ),
  ];
  if (card.provider !== undefined) rows.push(["provider", `${card.provider.organization}  ${card.provider.url}`]);
  if (card.documentationUrl !== undefined) rows.push(["documentation", card.documentationUrl]);
  if (card.signatures !== undefined) rows.push(["signatures", `${card.signatures.length}, not verified`]);
  return [
    `${style("bold", line(card.name, longest.name))} ${line(card.version, longest.name)}\n`,
    `${plain(card.description, longest.description)}\n\n`,
    table(rows.map(([name, value]) => [name, line(value)])),
    ...(card.skills.length === 0 ? [] : [`\n${style("bold", "Skills")}\n`]),
    ...listed(card.skills, (skill) => showSkill(skill, style)).map((text) => `  ${text.trimEnd()}\n`),
  ].join("");
}

function showInterface({ url, protocolBinding, protocolVersion, tenant }: AgentInterface): string {
  return `${protocolBinding} ${protocolVersion}  ${url}${tenant === undefined ? "" : `  (tenant ${tenant})`}`;
}

function showSkill(skill: AgentSkill, style: Style): string {
  const tags = skill.tags.length === 0 ? "" : style("dim", `  [${line(skill.tags.join(", "))}]`);
  const examples = listed(skill.examples ?? [], (example) => `${style("dim", ">")} ${line(example)}`);
  return [
    `${style("bold", line(skill.name, longest.name))}${tags}`,
    `    ${line(skill.description)}`,
    ...examples.map((example) => `    ${example}`),
  ].join("\n");
}
