import { html } from "@parley/a2a/internal/base/display";
import type { AgentCard, AgentSkill, SecurityScheme } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";

/* The pages that browsers get at the addresses of agents. They show public cards, whose texts are untrusted. */

interface PagedAgent {
  readonly card: AgentCard;
  readonly cardUrl: string;
  /** URL of its base, where its page is. */
  readonly url: string;
  readonly tenant?: string;
}

/** An additional link of the host. */
interface PagedLink {
  readonly text: string;
  readonly href: string;
}

/** Maximum entries of each list on a page. The card has all. */
const max = { agents: 200, skills: 100, examples: 5, tags: 10, interfaces: 20, schemes: 10 };

const cardPath = "/.well-known/agent-card.json";

export function agentPage({ card, cardUrl }: PagedAgent, links: readonly PagedLink[] = []): string {
  const { name, description, version, provider, documentationUrl } = card;
  const facts = [
    fact("Version", html(version, 100)),
    provider === undefined ? "" : fact("Provider", link(provider.url, provider.organization)),
    documentationUrl === undefined ? "" : fact("Documentation", link(documentationUrl)),
    fact("Card", link(cardUrl)),
  ];
  const samples = samplesOf(card, addressOf(cardUrl)).map(
    ({ title, code }) => `<h3>${title}</h3><pre tabindex="0"><code>${html(code, 4000)}</code></pre>`,
  );
  const content = [
    `<header><h1 dir="auto">${html(name, 200)}</h1>${paragraph(description, 4000)}${linked(links)}<dl>${facts.join("")}</dl></header>`,
    section("Skills", listed(card.skills, max.skills, skillOf)),
    section("Call it", samples.join("")),
    section("Credentials", schemesOf(card)),
    section("Addresses", `<ul>${addressesOf(card)}</ul>`),
  ];
  return frame(name, `<main>${content.join("")}</main>`);
}

export function listPage(agents: readonly PagedAgent[], url: string, links: readonly PagedLink[] = []): string {
  const entry = ({ card, cardUrl, url: own, tenant }: PagedAgent): string => {
    const title = tenant === undefined ? link(own, card.name) : `${html(card.name, 200)} (${html(tenant, 100)})`;
    const version = `<p>Version ${html(card.version, 100)} · ${link(cardUrl, "Card")}</p>`;
    return `<article><h3 dir="auto">${title}</h3>${paragraph(card.description, 400)}${version}</article>`;
  };
  const host = new URL(url).host;
  return frame(
    `Agents at ${host}`,
    `<main><h1>Agents at ${html(host, 200)}</h1>${linked(links)}${listed(agents, max.agents, entry)}</main>`,
  );
}

function addressOf(cardUrl: string): string {
  return cardUrl.endsWith(cardPath) ? cardUrl.slice(0, -cardPath.length) : cardUrl;
}

function skillOf({ name, description, tags, examples = [] }: AgentSkill): string {
  const tagged = tags.slice(0, max.tags).map((tag) => `<li dir="auto">${html(tag, 40)}</li>`);
  const asked = examples.slice(0, max.examples).map((example) => `<li dir="auto">${html(example, 300)}</li>`);
  return [
    `<article><h3 dir="auto">${html(name, 200)}</h3>${paragraph(description, 600)}`,
    asked.length === 0 ? "" : `<p>For example:</p><ul>${asked.join("")}</ul>`,
    tagged.length === 0 ? "" : `<ul class="tags">${tagged.join("")}</ul>`,
    "</article>",
  ].join("");
}

/** The authentication that callers need, as the alternatives of the card. */
function schemesOf({ securityRequirements = [], securitySchemes = {} }: AgentCard): string {
  if (securityRequirements.length === 0) return "";
  const alternatives = securityRequirements.slice(0, max.schemes).map(({ schemes = {} }) => {
    const names = Object.keys(schemes).slice(0, max.schemes);
    const told = names.map((name) => {
      const scheme = Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined;
      const description = Object.values(scheme ?? {}).flatMap((kind) =>
        isObject(kind) && typeof kind["description"] === "string" ? [`: ${html(kind["description"], 300)}`] : [],
      );
      return `<b dir="auto">${html(name, 100)}</b>${description.join("")}`;
    });
    return `<li>${told.length === 0 ? "none" : told.join(" and ")}</li>`;
  });
  return `<p>Callers need one of:</p><ul>${alternatives.join("")}</ul>`;
}

function addressesOf({ supportedInterfaces }: AgentCard): string {
  return supportedInterfaces
    .slice(0, max.interfaces)
    .map(
      ({ protocolBinding, protocolVersion, url }) =>
        `<li>${html(protocolBinding, 100)} ${html(protocolVersion, 20)}: <code>${html(url, 300)}</code></li>`,
    )
    .join("");
}

function listed<T>(all: readonly T[], count: number, write: (one: T) => string): string {
  const rest = all.length - count;
  return all.slice(0, count).map(write).join("") + (rest > 0 ? `<p>And ${rest} more.</p>` : "");
}

function section(title: string, content: string): string {
  return content === "" ? "" : `<section><h2>${title}</h2>${content}</section>`;
}

function linked(links: readonly PagedLink[]): string {
  return links.map(({ text, href }) => `<p>${link(href, text)}</p>`).join("");
}

function fact(name: string, value: string): string {
  return `<dt>${name}</dt><dd dir="auto">${value}</dd>`;
}

/* Shared parts of all pages for browsers. Pages have no script and load nothing. */

const style =
  ":root{color-scheme:light dark;--line:#8886;--soft:#8881}" +
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1.5rem 1rem 4rem;color:#1c1c1e;background:#fff}" +
  "h1{margin:0 0 .5rem;font-size:1.9rem;line-height:1.2}h2{margin:2.2rem 0 .6rem;font-size:1.2rem}h3{margin:0;font-size:1rem}" +
  "h1,h2,h3,p,li,dd,td{overflow-wrap:anywhere}p{margin:.3rem 0}.text{white-space:pre-line}a{color:#0b57d0}" +
  "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:1rem 0}dt{opacity:.7}dd{margin:0}" +
  "article{padding:.8rem 0;border-top:1px solid var(--line)}ul{margin:.3rem 0;padding-left:1.2rem}" +
  ".tags{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.3rem}.tags li{padding:0 .5rem;border:1px solid var(--line);border-radius:1rem;font-size:.85rem}" +
  "pre{margin:.4rem 0 1rem;padding:.8rem;overflow-x:auto;background:var(--soft);border-radius:.4rem;font-size:.85rem}" +
  "code{font-family:ui-monospace,monospace}" +
  "@media(prefers-color-scheme:dark){body{color:#e8e8ea;background:#161618}a{color:#8ab4f8}}" +
  "@media(max-width:30rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}h1{font-size:1.5rem}}";

/** A page. `content` is HTML. */
export function frame(title: string, content: string): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${html(title, 200)}</title><style>${style}</style></head><body>${content}</body></html>`
  );
}

/** The headers of a page: it may use its own style and nothing else. */
export async function pageHeaders(): Promise<Readonly<Record<string, string>>> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style)));
  const hash = btoa(String.fromCharCode(...digest));
  return {
    "content-type": "text/html; charset=utf-8",
    // The same URL answers other clients differently.
    vary: "Accept",
    "cache-control": "no-cache",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
}

/** A link to an `http` or `https` URL. Any other URL is shown as text, because `javascript:` would run in the page. */
function link(url: string, text: string = url): string {
  const shown = html(text, 300);
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && url.length <= 2000;
  return isWeb ? `<a href="${html(new URL(url).href, 6000)}" rel="noreferrer nofollow">${shown}</a>` : shown;
}

/** Untrusted text as a paragraph. */
function paragraph(text: string, limit: number): string {
  return `<p class="text" dir="auto">${html(text, limit)}</p>`;
}

/* Example calls of an agent, to copy. They contain no texts of the card, because users run them. */

/** A way to call. */
interface Sample {
  readonly title: string;
  readonly code: string;
}

/**
 * The ways to call an agent.
 *
 * @param address - The base URL of its card.
 */
function samplesOf(card: AgentCard, address: string): readonly Sample[] {
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

/** Uses REST if the agent speaks it, else JSON-RPC. `undefined`: the agent supports neither binding in version 1.0. */
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

/** Quotes a text as one word of a POSIX shell. */
function word(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
