import type { AgentCard, SecurityScheme } from "@parley/a2a";
import { jsonLine, line, plain } from "@parley/conform/terminal";
import { open, type CallOptions } from "../connection.ts";
import type { Io } from "../io.ts";
import { callOptions, url, type Program } from "../options.ts";
import { styleFor, table, type Style } from "../output/text.ts";

export function addCard({ io, command, finish }: Program): void {
  callOptions(
    command("card", {
      summary: "Show an agent's card",
      description: "What the agent can do, and how to reach it.",
      examples: ["parley card http://localhost:4000", "parley card http://localhost:4000 --json"],
    }).argument(...url),
  ).action(async (at: string, options: CallOptions) => finish(await card(io, at, options)));
}

async function card(io: Io, at: string, options: CallOptions): Promise<number> {
  const client = await open(io, at, options);
  io.stdout.write(
    options.json === true ? `${jsonLine(client.card)}\n` : showCard(client.card, styleFor(io.stdout, io.env)),
  );
  return 0;
}

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
function showCard(card: AgentCard, style: Style): string {
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
