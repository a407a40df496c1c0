import type { AgentCard } from "@parley/a2a";
import {
  canonicalJson,
  lintCard,
  verifyCard,
  type CardKeySet,
  type CardReading,
  type SignatureVerdict,
} from "@parley/a2a/cards";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AgentEntry } from "../../src/api.ts";
import { Json } from "../parts/content.tsx";
import { Problem } from "../parts/form.tsx";
import { WebLink } from "../parts/markdown.tsx";
import { servedCard } from "../server.ts";

/** The card of an agent, and its problems. */
export function Card({ agent }: { readonly agent: AgentEntry }) {
  const { url, tenant } = agent;
  const card = useCard(agent);
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
        {tenant !== undefined && (
          <>
            <dt>Tenant</dt>
            <dd dir="auto">{tenant}</dd>
          </>
        )}
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
        <p>No problems found.</p>
      ) : (
        <ul>
          {findings.map((finding, at) => (
            <li key={at} data-level={finding.level}>
              <strong>{finding.level}</strong> {finding.message}{" "}
              {finding.field !== "" && <code class="quiet">{finding.field}</code>}
            </li>
          ))}
        </ul>
      )}
      <Signatures card={card} />
      <Changes card={agent.card} url={tenant === undefined ? url : `${url} ${tenant}`} />
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

/** The card that this server sends to callers, with its signatures. Until it loads, and in `parley inspect`, the card of the entry. */
function useCard({ card, cardPath }: AgentEntry): AgentCard {
  const read = useSignal<AgentCard | undefined>(undefined);
  useEffect(() => {
    read.value = undefined;
    // If the server rejects the request, the card of the entry remains.
    if (cardPath !== undefined)
      void servedCard(cardPath).then(
        (found) => (read.value = found),
        () => undefined,
      );
  }, [card, cardPath]);
  return read.value ?? card;
}

/** The signatures of a card. Trusts only keys that the user enters, never keys that the card names. */
function Signatures({ card }: { readonly card: AgentCard }) {
  const keys = useSignal("");
  const problem = useSignal("");
  const verdicts = useSignal<readonly SignatureVerdict[]>([]);
  const check = async (): Promise<void> => {
    problem.value = "";
    try {
      const keySet = keys.value.trim() === "" ? { keys: [] } : keySetIn(keys.value);
      verdicts.value = (await verifyCard(card, { keys: [{ keySet }] })).signatures;
    } catch (thrown) {
      verdicts.value = [];
      problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  useEffect(() => void check(), [card]);
  if ((card.signatures ?? []).length === 0) {
    return (
      <>
        <h2>Signatures</h2>
        <p>The card is not signed. Only the URL that it came from tells who wrote it.</p>
      </>
    );
  }
  return (
    <>
      <h2>Signatures</h2>
      <ul class="signatures">
        {verdicts.value.map((verdict, at) => (
          <Verdict key={at} verdict={verdict} />
        ))}
      </ul>
      <form
        class="resend"
        onSubmit={(event) => {
          event.preventDefault();
          void check();
        }}
      >
        <label>
          Trusted keys, as a JSON Web Key Set
          <textarea
            rows={3}
            spellcheck={false}
            value={keys.value}
            onInput={({ currentTarget }) => (keys.value = currentTarget.value)}
          />
        </label>
        <p class="quiet">Get them from the operator of the agent, not from a URL in the card.</p>
        <button type="submit">Verify</button>
        <Problem text={problem.value} />
      </form>
    </>
  );
}

/** The meaning of each outcome. */
const meanings: Readonly<Record<SignatureVerdict["outcome"], readonly [word: string, meaning: string]>> = {
  valid: ["verified", "A key that you trust signed the card, and the card is unchanged since"],
  invalid: [
    "invalid",
    "The key is trusted, but the signature does not match: the card was changed, or the signature is forged",
  ],
  "unknown-key": ["unknown key", "No key that you trust made this signature, so it proves nothing yet"],
  "outdated-key": ["outdated key", "The key is no longer valid, so the card must be signed again"],
  "unreadable-keys": ["unreadable keys", "The keys could not be read"],
  unsupported: ["unsupported", "The signature cannot be verified"],
};

const readings: Readonly<Record<CardReading, string>> = {
  exact: "over the document as received",
  specification: "over the members that A2A defines",
  reduced: "over the members that are not empty",
};

function Verdict({ verdict: { outcome, kid, alg, jku, reading, reason } }: { readonly verdict: SignatureVerdict }) {
  const [word, meaning] = meanings[outcome];
  return (
    <li data-outcome={outcome}>
      <strong>{word}</strong> {meaning}
      {reason !== undefined && ` (${reason})`}.
      <div class="quiet">
        {[
          kid === undefined ? "names no key" : `key ${kid}`,
          alg ?? "",
          reading === undefined ? "" : readings[reading],
          jku === undefined ? "" : `names the key set ${jku}, which does not make it trusted`,
        ]
          .filter((text) => text !== "")
          .join(" · ")}
      </div>
    </li>
  );
}

function keySetIn(text: string): CardKeySet {
  const read: unknown = JSON.parse(text);
  if (typeof read === "object" && read !== null && "keys" in read && Array.isArray(read.keys))
    return { keys: read.keys };
  throw new Error('Keys must be { "keys": [ … ] }, as parley card key prints them');
}

/** The cards of the last visits, by URL, as stored when the page was opened. */
const lastVisits = new Map<string, readonly string[] | undefined>();

function lastVisit(url: string): readonly string[] | undefined {
  if (!lastVisits.has(url)) {
    const last = localStorage.getItem(`card ${url}`);
    lastVisits.set(url, last === null ? undefined : linesOf(last));
  }
  return lastVisits.get(url);
}

/** The differences between the card and the card at this browser's last visit. */
function Changes({ card, url }: { readonly card: AgentCard; readonly url: string }) {
  const before = useMemo(() => lastVisit(url), [url]);
  const now = canonicalJson(card);
  useEffect(() => {
    // Storage is full: the next visit has no card to compare with.
    try {
      localStorage.setItem(`card ${url}`, now);
    } catch {
      // Storage is unavailable: the browser cannot compare cards.
    }
  }, [url, now]);
  const lines = linesOf(now);
  const added = before === undefined ? [] : lines.filter((line) => !before.includes(line));
  const removed = before?.filter((line) => !lines.includes(line)) ?? [];
  return (
    <>
      <h2>Changes since the last visit</h2>
      {before === undefined && <p>This is the first visit.</p>}
      {before !== undefined && added.length + removed.length === 0 && <p>None.</p>}
      {added.length + removed.length > 0 && (
        <pre tabIndex={0}>
          {[...removed.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)].slice(0, 200).join("\n")}
        </pre>
      )}
    </>
  );
}

/** One line for each value of a document, with its path. */
function linesOf(json: string): readonly string[] {
  const lines: string[] = [];
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return void lines.push(`${path}: ${JSON.stringify(value)}`);
    for (const [name, member] of Object.entries(value)) walk(member, path === "" ? name : `${path}.${name}`);
  };
  walk(JSON.parse(json), "");
  return lines.slice(0, 5_000);
}
