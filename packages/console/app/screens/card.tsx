import { lintCard } from "@parley/a2a/cards";
import type { AgentEntry } from "../../src/api.ts";
import { Json } from "../parts/content.tsx";
import { WebLink } from "../parts/markdown.tsx";

/** The card of an agent, and what is wrong with it. */
export function Card({ agent: { card, url } }: { readonly agent: AgentEntry }) {
  const findings = lintCard(card);
  return (
    <div class="card">
      <h1 dir="auto">{card.name}</h1>
      <p dir="auto">{card.description}</p>
      <dl>
        <dt>Address</dt>
        <dd>
          <WebLink href={url} />
        </dd>
        <dt>Version</dt>
        <dd>{card.version}</dd>
        {card.provider !== undefined && (
          <>
            <dt>Provider</dt>
            <dd>
              <WebLink href={card.provider.url}>{card.provider.organization}</WebLink>
            </dd>
          </>
        )}
      </dl>
      <h2>Checks</h2>
      {findings.length === 0 ? (
        <p>No mistakes were found.</p>
      ) : (
        <ul>
          {findings.map((finding, at) => (
            <li key={at} data-level={finding.level}>
              <strong>{finding.level}</strong> {finding.message}
            </li>
          ))}
        </ul>
      )}
      <h2>Skills</h2>
      <ul>
        {card.skills.map(({ id, name, description }) => (
          <li key={id} dir="auto">
            <strong>{name}</strong> {description}
          </li>
        ))}
      </ul>
      <h2>Document</h2>
      <Json value={card} />
    </div>
  );
}
