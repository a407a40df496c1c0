import { useSignal } from "@preact/signals";
import type { CapturedBody, HeaderList } from "../../src/api.ts";
import { sizeText } from "../parts/content.tsx";
import { linkTo, route } from "../route.ts";
import { sendRaw } from "../server.ts";
import { asCurl, clearWire, exchanges, isLive, type Exchange } from "../wire.ts";

/** Requests and what came back, newest first, beside the one that is chosen. */
export function Wire({ agent }: { readonly agent: string | undefined }) {
  const filter = useSignal("");
  const found = exchanges.value.filter((one) => matches(one, agent, filter.value)).toReversed();
  const chosen = exchanges.value.find(({ request }) => String(request.exchange) === route.value.item);
  return (
    <div class="split">
      <section class="list" aria-label="Requests">
        <header>
          <input
            type="search"
            placeholder="Filter"
            aria-label="Filter"
            value={filter.value}
            onInput={({ currentTarget }) => (filter.value = currentTarget.value)}
          />
          <button type="button" class="small" onClick={clearWire}>
            Clear
          </button>
        </header>
        {isLive.value === false && (
          <p class="problem" role="status">
            The console's server does not answer; retrying
          </p>
        )}
        {found.length === 0 && <p class="quiet empty">Nothing was sent yet.</p>}
        <ol>
          {found.slice(0, 500).map((one) => (
            <Row key={one.request.exchange} exchange={one} agent={agent} isChosen={one === chosen} />
          ))}
        </ol>
      </section>
      {chosen === undefined ? (
        <p class="quiet empty">Choose a request to see its bytes.</p>
      ) : (
        <Detail exchange={chosen} />
      )}
    </div>
  );
}

function matches({ request, pieces }: Exchange, agent: string | undefined, filter: string): boolean {
  if (agent !== undefined && request.agent !== agent) return false;
  if (filter === "") return true;
  const wanted = filter.toLowerCase();
  const holds = (text: string): boolean => text.toLowerCase().includes(wanted);
  return holds(request.url) || holds(request.body.text) || pieces.some(({ body }) => holds(body.text));
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
        <span class="status" data-failed={error !== undefined || (response?.status ?? 0) >= 400}>
          {response?.status ?? (error === undefined ? "…" : "failed")}
        </span>
        <span>
          {request.method} {nameOf(exchange)}
        </span>
        <span class="quiet">
          {ended === undefined ? "open" : `${ended - request.at} ms`} ·{" "}
          {pieces.length > 1 && `${pieces.length} events · `}
          {sizeText(bytes)}
        </span>
      </a>
    </li>
  );
}

/** The method of JSON-RPC, else the path. */
function nameOf({ request }: Exchange): string {
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
        <button
          type="button"
          class="small"
          onClick={() => (editing.value = !editing.value)}
          aria-expanded={editing.value}
        >
          Edit and resend
        </button>
      </header>
      {editing.value && <Resend key={request.exchange} exchange={exchange} />}
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
  const isCut = body.text.length < body.bytes / 4;
  return (
    <>
      <pre tabIndex={0}>
        <code>{pretty(body.text)}</code>
      </pre>
      {isCut && <p class="quiet">{sizeText(body.bytes)} in all.</p>}
    </>
  );
}

/** JSON with line breaks; any other text as it is. */
function pretty(text: string): string {
  if (text.length > 200_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A request to change and send. Masked headers are left out: the console adds credentials of its own. */
function Resend({ exchange: { request } }: { readonly exchange: Exchange }) {
  const headers = useSignal(textOf(request.headers.filter(([, value]) => !value.includes("•••"))));
  const body = useSignal(request.body.text);
  const problem = useSignal("");
  const send = async (): Promise<void> => {
    problem.value = "";
    try {
      const { agent, method, url } = request;
      const withBody = method === "GET" || body.value === "" ? {} : { body: body.value };
      await sendRaw({ agent, method, url, headers: headersOf(headers.value), ...withBody });
    } catch (thrown) {
      problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  return (
    <form
      class="resend"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
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
      {problem.value !== "" && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </form>
  );
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
