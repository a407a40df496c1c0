import type { AgentCard, SecurityScheme } from "@parley/a2a";
import type { Style } from "./style.ts";
import { line, plain } from "@parley/conform/terminal";
import { table } from "./text.ts";

function schemeKind(scheme: SecurityScheme | undefined): string {
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

/** An agent card as readable text (A2A 1.0 §4.4.1). */
export function showCard(card: AgentCard, style: Style): string {
  const can = [
    card.capabilities.streaming === true ? "streaming" : undefined,
    card.capabilities.pushNotifications === true ? "push notifications" : undefined,
    card.capabilities.extendedAgentCard === true ? "extended card" : undefined,
  ].filter((word) => word !== undefined);
  const rows: [string, string][] = [
    ...card.supportedInterfaces.map((each, i): [string, string] => [
      i === 0 ? "interfaces" : "",
      `${each.protocolBinding} ${each.protocolVersion}  ${each.url}${each.tenant === undefined ? "" : `  (tenant ${each.tenant})`}`,
    ]),
    ["capabilities", can.length === 0 ? "none" : can.join(", ")],
    ["takes", card.defaultInputModes.join(", ")],
    ["gives", card.defaultOutputModes.join(", ")],
    ...security(card).map((text, i): [string, string] => [i === 0 ? "security" : "or", text]),
    ...(card.capabilities.extensions ?? []).map((each, i): [string, string] => [
      i === 0 ? "extensions" : "",
      `${each.uri ?? "?"}${each.required === true ? " (required)" : ""}`,
    ]),
  ];
  if (card.provider !== undefined) rows.push(["provider", `${card.provider.organization}  ${card.provider.url}`]);
  if (card.documentationUrl !== undefined) rows.push(["documentation", card.documentationUrl]);
  if (card.signatures !== undefined) rows.push(["signatures", `${card.signatures.length}, not verified`]);

  const skills = card.skills.map((skill) => {
    const tags = skill.tags.length === 0 ? "" : style("dim", `  [${line(skill.tags.join(", "))}]`);
    const examples = (skill.examples ?? []).map((example) => `    ${style("dim", ">")} ${line(example)}\n`).join("");
    return `  ${style("bold", line(skill.name))}${tags}\n    ${line(skill.description)}\n${examples}`;
  });
  return [
    `${style("bold", line(card.name))} ${line(card.version)}\n`,
    `${plain(card.description)}\n\n`,
    table(rows.map(([name, value]) => [name, line(value)])),
    ...(skills.length === 0 ? [] : [`\n${style("bold", "Skills")}\n`, ...skills]),
  ].join("");
}
