import type { AgentCard, SecurityScheme } from "@parley/a2a/internal/model/index";

/* How an agent is called, as commands and programs that can be copied. Nothing of a card's texts is in them: they would be run. */

/** A way to call. */
export interface Sample {
  readonly title: string;
  readonly code: string;
}

/**
 * The ways to call an agent.
 *
 * @param address - The address that its card is found below.
 */
export function samplesOf(card: AgentCard, address: string): readonly Sample[] {
  const command = curl(card);
  return [
    ...(command === undefined ? [] : [{ title: "curl", code: command }]),
    {
      title: "TypeScript",
      code: [
        'import { connect } from "@parley/a2a";',
        "",
        `const client = await connect(${JSON.stringify(address)});`,
        'for await (const event of client.sendStreamingMessage("Hello")) console.log(event);',
      ].join("\n"),
    },
    { title: "Command line", code: `npx @parley/cli send ${word(address)} "Hello"` },
  ];
}

/** By REST where the agent speaks it, else by JSON-RPC. `undefined`: it speaks neither in version 1.0. */
function curl(card: AgentCard): string | undefined {
  const spoken = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === "1.0");
  const rest = spoken.find(({ protocolBinding }) => protocolBinding === "HTTP+JSON");
  const rpc = spoken.find(({ protocolBinding }) => protocolBinding === "JSONRPC");
  const message = { messageId: "hello-1", role: "ROLE_USER", parts: [{ text: "Hello" }] };
  if (rest !== undefined) {
    const tenant = rest.tenant === undefined ? "" : `/${encodeURIComponent(rest.tenant)}`;
    return post(`${rest.url}${tenant}/message:send`, { message }, card);
  }
  if (rpc === undefined) return undefined;
  const params = { ...(rpc.tenant !== undefined && { tenant: rpc.tenant }), message };
  return post(rpc.url, { jsonrpc: "2.0", id: 1, method: "SendMessage", params }, card);
}

function post(url: string, body: object, card: AgentCard): string {
  const lines = [
    `curl ${word(url)}`,
    "-H 'Content-Type: application/json' -H 'A2A-Version: 1.0'",
    ...credentials(card),
    `-d ${word(JSON.stringify(body))}`,
  ];
  return lines.join(" \\\n  ");
}

/** The options of curl for the first requirement of the card, with variables of the shell in place of secrets. */
function credentials({ securityRequirements = [], securitySchemes = {} }: AgentCard): readonly string[] {
  const [first] = securityRequirements;
  return Object.keys(first?.schemes ?? {}).flatMap((name) => {
    const scheme = Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined;
    return scheme === undefined ? [] : optionOf(scheme);
  });
}

function optionOf(scheme: SecurityScheme): readonly string[] {
  const { apiKeySecurityScheme: key, httpAuthSecurityScheme: http, mtlsSecurityScheme } = scheme;
  if (mtlsSecurityScheme !== undefined) return ["--cert client.pem"];
  if (key !== undefined) {
    if (!/^[\w-]+(?:\.[\w-]+)*$/.test(key.name)) return [];
    if (key.location === "cookie") return [`--cookie "${key.name}=$API_KEY"`];
    return key.location === "header" ? [`-H "${key.name}: $API_KEY"`] : [];
  }
  if (http !== undefined && /^basic$/i.test(http.scheme)) return ['-u "$NAME:$PASSWORD"'];
  return ['-H "Authorization: Bearer $TOKEN"'];
}

/** One word of a shell (POSIX), whatever it contains. */
function word(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
