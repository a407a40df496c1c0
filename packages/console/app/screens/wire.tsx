import { signal, useSignal } from "@preact/signals";
import { webhooks, type CapturedBody, type HeaderList } from "../../src/api.ts";
import { asCode, asCurl } from "../code.ts";
import { sizeText } from "../parts/content.tsx";
import { Deliveries, deliveryTexts } from "../parts/deliveries.tsx";
import { Problem, useAttempt } from "../parts/form.tsx";
import { Time } from "../parts/time.tsx";
import { linkTo, route } from "../route.ts";
import { readOnly } from "../saved.ts";
import { sendRaw } from "../server.ts";
import { clearWire, exchanges, isLive, isOf, recorder, type Exchange } from "../wire.ts";

/** Exchanges pinned to the top of the list. */
const pinned = signal<ReadonlySet<number>>(new Set());

function pin(exchange: number): void {
  const next = new Set(pinned.value);
  if (!next.delete(exchange)) next.add(exchange);
  pinned.value = next;
}

/** Filters of the list. An empty string matches all. */
interface Wanted {
  readonly text: string;
  readonly operation: string;
  readonly status: "" | "ok" | "failed" | "open";
}

/** The exchanges, newest first, and next to them the selected exchange. */
export function Wire({ agent }: { readonly agent: string | undefined }) {
  const wanted = useSignal<Wanted>({ text: "", operation: "", status: "" });
  const own = exchanges.value.filter(isOf(agent));
  const matching = own.filter((one) => matches(one, wanted.value)).toReversed();
  const isPinned = ({ request }: Exchange): boolean => pinned.value.has(request.exchange);
  const found = [...matching.filter(isPinned), ...matching.filter((one) => !isPinned(one))];
  const chosen = exchanges.value.find(({ request }) => String(request.exchange) === route.value.item);
  return (
    <div class="split">
      <section class="list" aria-label="Requests">
        <Filters
          wanted={wanted.value}
          names={[...new Set(own.map(nameOf))]}
          onWanted={(next) => (wanted.value = next)}
        />
        {isLive.value === false && (
          <p class="problem" role="status">
            The console's server does not answer; retrying
          </p>
        )}
        {found.length === 0 && <p class="quiet empty">No requests.</p>}
        <ol>
          {found.slice(0, 500).map((one) => (
            <Row key={one.request.exchange} exchange={one} agent={agent} isChosen={one === chosen} />
          ))}
        </ol>
      </section>
      {chosen === undefined ? (
        <div class="empty">
          <h1>Wire</h1>
          <p class="quiet">Choose a request to see its bytes.</p>
        </div>
      ) : (
        <Detail exchange={chosen} />
      )}
    </div>
  );
}

interface FiltersProps {
  readonly wanted: Wanted;
  /** The operations in the list. */
  readonly names: readonly string[];
  readonly onWanted: (wanted: Wanted) => void;
}

function Filters({ wanted, names, onWanted }: FiltersProps) {
  return (
    <header>
      <input
        type="search"
        placeholder="Filter"
        aria-label="Filter"
        value={wanted.text}
        onInput={({ currentTarget }) => onWanted({ ...wanted, text: currentTarget.value })}
      />
      <select
        aria-label="Operation"
        value={wanted.operation}
        onChange={({ currentTarget }) => onWanted({ ...wanted, operation: currentTarget.value })}
      >
        <option value="">all operations</option>
        {names.slice(0, 50).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select
        aria-label="Status"
        value={wanted.status}
        onChange={({ currentTarget }) =>
          onWanted({ ...wanted, status: statuses.find((status) => status === currentTarget.value) ?? "" })
        }
      >
        <option value="">any status</option>
        {statuses.map((status) => (
          <option key={status}>{status}</option>
        ))}
      </select>
      <button type="button" class="small" onClick={clearWire}>
        Clear
      </button>
    </header>
  );
}

const statuses = ["ok", "failed", "open"] as const;

function matches(exchange: Exchange, { text, operation, status }: Wanted): boolean {
  const { request, pieces } = exchange;
  if (operation !== "" && nameOf(exchange) !== operation) return false;
  if (status !== "" && statusOf(exchange) !== status) return false;
  if (text === "") return true;
  const wanted = text.toLowerCase();
  const holds = (given: string): boolean => given.toLowerCase().includes(wanted);
  return holds(request.url) || holds(request.body.text) || pieces.some(({ body }) => holds(body.text));
}

function statusOf({ response, ended, error }: Exchange): Wanted["status"] {
  if (error !== undefined || (response?.status ?? 0) >= 400) return "failed";
  return ended === undefined ? "open" : "ok";
}

interface RowProps {
  readonly exchange: Exchange;
  readonly agent: string | undefined;
  readonly isChosen: boolean;
}

function Row({ exchange, agent, isChosen }: RowProps) {
  const { request, response, pieces, ended, error, bytes } = exchange;
  const to = linkTo({ screen: "wire", ...(agent !== undefined && { agent }), item: String(request.exchange) });
  return (
    <li>
      <a href={to} aria-current={isChosen ? "true" : undefined}>
        <span class="status" data-failed={statusOf(exchange) === "failed"}>
          {response?.status ?? (error === undefined ? "…" : "failed")}
        </span>
        <span>
          {pinned.value.has(request.exchange) && "★ "}
          {request.method} {nameOf(exchange)}
        </span>
        <span class="quiet">
          {request.agent !== webhooks ? (
            <>
              {ended === undefined ? "open" : `${ended.at - request.at} ms`} ·{" "}
              {pieces.length > 1 && `${pieces.length} events · `}
              {sizeText(bytes)}
            </>
          ) : (
            <>
              <Time at={request.at} /> · {[...deliveryTexts(request), sizeText(request.body.bytes)].join(" · ")}
            </>
          )}
        </span>
      </a>
    </li>
  );
}

/** The JSON-RPC method; otherwise the path. */
function nameOf({ request }: Exchange): string {
  if (request.agent === webhooks) return "webhook";
  const method = /"method"\s*:\s*"([\w/]{1,60})"/.exec(request.body.text)?.[1];
  return method ?? (URL.canParse(request.url) ? new URL(request.url).pathname : request.url);
}

function Detail({ exchange }: { readonly exchange: Exchange }) {
  const { request, response, pieces, error } = exchange;
  const editing = useSignal(false);
  return (
    <section class="detail" aria-label="Request" tabIndex={0}>
      <header>
        <h1>
          {request.method} {request.url}
        </h1>
        <button type="button" class="small" onClick={() => void navigator.clipboard.writeText(asCurl(request))}>
          Copy as curl
        </button>
        <button type="button" class="small" onClick={() => void navigator.clipboard.writeText(asCode(request))}>
          Copy as TypeScript
        </button>
        <button
          type="button"
          class="small"
          aria-pressed={pinned.value.has(request.exchange)}
          onClick={() => pin(request.exchange)}
        >
          Pin
        </button>
        <button
          type="button"
          class="small"
          disabled={readOnly.value !== undefined || request.agent === webhooks}
          onClick={() => (editing.value = !editing.value)}
          aria-expanded={editing.value}
        >
          Edit and resend
        </button>
      </header>
      {editing.value && <Resend key={request.exchange} exchange={exchange} />}
      <p class="quiet">
        {request.agent === webhooks ? "Received" : "Sent"} <Time at={request.at} withZone />
      </p>
      <Deliveries of={exchange} all={exchanges.value} />
      <h2>Request</h2>
      <HeaderTable headers={request.headers} />
      <Body body={request.body} />
      <h2>Response {response?.status}</h2>
      {response !== undefined && <HeaderTable headers={response.headers} />}
      {pieces.slice(0, 1_000).map((piece) => (
        <div key={piece.n} class="piece">
          <span class="quiet">+{piece.at - request.at} ms</span>
          <Body body={piece.body} />
        </div>
      ))}
      {pieces.length > 1_000 && <p class="quiet">And {pieces.length - 1_000} more.</p>}
      {error !== undefined && <p class="problem">{error}</p>}
    </section>
  );
}

function HeaderTable({ headers }: { readonly headers: HeaderList }) {
  return (
    <table class="headers">
      <tbody>
        {headers.map(([name, value], at) => (
          <tr key={at}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Body({ body }: { readonly body: CapturedBody }) {
  if (body.bytes === 0) return null;
  return (
    <>
      <pre tabIndex={0}>
        <code>{pretty(body.text)}</code>
      </pre>
      {body.isCut === true && <p class="quiet">Truncated; the body has {sizeText(body.bytes)}.</p>}
    </>
  );
}

/** JSON with line breaks; any other text unchanged. */
function pretty(text: string): string {
  if (text.length > 200_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const mask = "•••";

/** A form to edit and resend a request. Omits masked headers, because the console adds its credentials. The user fills in a masked URL. */
function Resend({ exchange: { request } }: { readonly exchange: Exchange }) {
  const headers = useSignal(textOf(request.headers.filter(([, value]) => !value.includes(mask))));
  const url = useSignal(request.url.replaceAll(encodeURIComponent(mask), mask));
  const body = useSignal(request.body.text);
  const { problem, attempt } = useAttempt();
  const send = async (): Promise<void> => {
    const { agent, method } = request;
    const names = maskedIn(url.value);
    if (names.length > 0)
      throw new Error(`The URL has masked secrets. Replace ${mask} by the value of ${names.join(", ")}`);
    const withBody = method === "GET" || body.value === "" ? {} : { body: body.value };
    await sendRaw({ agent, method, url: url.value, headers: headersOf(headers.value), ...withBody }, recorder);
  };
  return (
    <form
      class="resend"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(send);
      }}
    >
      <label>
        URL
        <input
          type="url"
          required
          spellcheck={false}
          value={url.value}
          onInput={({ currentTarget }) => (url.value = currentTarget.value)}
        />
      </label>
      <label>
        Headers
        <textarea
          rows={4}
          spellcheck={false}
          value={headers.value}
          onInput={({ currentTarget }) => (headers.value = currentTarget.value)}
        />
      </label>
      <label>
        Body
        <textarea
          rows={8}
          spellcheck={false}
          value={body.value}
          onInput={({ currentTarget }) => (body.value = currentTarget.value)}
        />
      </label>
      <button type="submit">Send</button>
      <Problem text={problem.value} />
    </form>
  );
}

/** Names of the masked query parameters of a URL. */
function maskedIn(url: string): readonly string[] {
  if (!URL.canParse(url)) return [];
  return [...new URL(url).searchParams].flatMap(([name, value]) => (value.includes(mask) ? [name] : []));
}

function textOf(headers: HeaderList): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}

function headersOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf(":");
      return at < 1 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()] as const];
    }),
  );
}
