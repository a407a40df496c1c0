import { html } from "@parley/a2a/internal/base/display";
import type { AgentCard, AgentSkill } from "@parley/a2a/internal/model/index";
import { frame, link, paragraph } from "./frame.ts";
import { samplesOf } from "./samples.ts";

/* The pages that browsers get at the addresses of agents. They say what public cards say, whose texts may be anybody's. */

/** An agent on a page. */
export interface PagedAgent {
  /** Its public card. */
  readonly card: AgentCard;
  /** URL of the card. */
  readonly cardUrl: string;
  /** URL of its base, where its page is. */
  readonly url: string;
  readonly tenant?: string;
}

/** Most entries of each list on a page. The card has all. */
const most = { agents: 200, skills: 100, examples: 5, tags: 10, interfaces: 20, schemes: 10 };

const cardPath = "/.well-known/agent-card.json";

/** The page of one agent. */
export function agentPage({ card, cardUrl }: PagedAgent): string {
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
    `<header><h1 dir="auto">${html(name, 200)}</h1>${paragraph(description, 4000)}<dl>${facts.join("")}</dl></header>`,
    section("Skills", listed(card.skills, most.skills, skillOf)),
    section("Call it", samples.join("")),
    section("Credentials", schemesOf(card)),
    section("Addresses", `<ul>${addressesOf(card)}</ul>`),
  ];
  return frame(name, `<main>${content.join("")}</main>`);
}

/** The page of several agents. */
export function listPage(agents: readonly PagedAgent[], url: string): string {
  const entry = ({ card, cardUrl, url: own, tenant }: PagedAgent): string => {
    const title = tenant === undefined ? link(own, card.name) : `${html(card.name, 200)} (${html(tenant, 100)})`;
    const version = `<p>Version ${html(card.version, 100)} · ${link(cardUrl, "Card")}</p>`;
    return `<article><h3 dir="auto">${title}</h3>${paragraph(card.description, 400)}${version}</article>`;
  };
  const host = new URL(url).host;
  return frame(
    `Agents at ${host}`,
    `<main><h1>Agents at ${html(host, 200)}</h1>${listed(agents, most.agents, entry)}</main>`,
  );
}

function addressOf(cardUrl: string): string {
  return cardUrl.endsWith(cardPath) ? cardUrl.slice(0, -cardPath.length) : cardUrl;
}

function skillOf({ name, description, tags, examples = [] }: AgentSkill): string {
  const tagged = tags.slice(0, most.tags).map((tag) => `<li dir="auto">${html(tag, 40)}</li>`);
  const asked = examples.slice(0, most.examples).map((example) => `<li dir="auto">${html(example, 300)}</li>`);
  return [
    `<article><h3 dir="auto">${html(name, 200)}</h3>${paragraph(description, 600)}`,
    asked.length === 0 ? "" : `<p>For example:</p><ul>${asked.join("")}</ul>`,
    tagged.length === 0 ? "" : `<ul class="tags">${tagged.join("")}</ul>`,
    "</article>",
  ].join("");
}

/** What callers need, in the alternatives of the card. */
function schemesOf({ securityRequirements = [], securitySchemes = {} }: AgentCard): string {
  if (securityRequirements.length === 0) return "";
  const alternatives = securityRequirements.slice(0, most.schemes).map(({ schemes = {} }) => {
    const names = Object.keys(schemes).slice(0, most.schemes);
    const told = names.map((name) => {
      const scheme = Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined;
      const description = Object.values(scheme ?? {}).flatMap((kind) =>
        typeof (kind as { description?: unknown }).description === "string"
          ? [`: ${html((kind as { description: string }).description, 300)}`]
          : [],
      );
      return `<b dir="auto">${html(name, 100)}</b>${description.join("")}`;
    });
    return `<li>${told.length === 0 ? "none" : told.join(" and ")}</li>`;
  });
  return `<p>Callers need one of:</p><ul>${alternatives.join("")}</ul>`;
}

function addressesOf({ supportedInterfaces }: AgentCard): string {
  return supportedInterfaces
    .slice(0, most.interfaces)
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

function fact(name: string, value: string): string {
  return `<dt>${name}</dt><dd dir="auto">${value}</dd>`;
}
