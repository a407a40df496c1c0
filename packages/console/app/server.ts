import { computed, signal } from "@preact/signals";
import type { AgentEntry, ConnectRequest, RawRequest, Session, WireRecord } from "../src/api.ts";

/* What the application asks of its server. */

/** The token of `parley inspect`, from the address of the page. It stays in this tab, and leaves the address. */
const token = takeToken();

function takeToken(): string | undefined {
  const given = new URLSearchParams(location.hash.slice(1));
  const fresh = given.get("token");
  if (fresh !== null) {
    sessionStorage.setItem("token", fresh);
    const agent = given.get("agent");
    history.replaceState(null, "", agent === null ? "#" : `#/talk/${agent}`);
  }
  return fresh ?? sessionStorage.getItem("token") ?? undefined;
}

/** Headers of every request to the origin of the page. */
export const ownHeaders: Readonly<Record<string, string>> = token === undefined ? {} : { "x-parley-console": token };

/** Why the last request to the server failed, for the user. */
export class ServerError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

async function ask(method: string, path: string, body?: object): Promise<Response> {
  const response = await fetch(`./api/${path}`, {
    method,
    headers: { ...ownHeaders, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (response.ok) return response;
  throw new ServerError(await reasonOf(response), response.status);
}

async function reasonOf(response: Response): Promise<string> {
  if (response.status === 401)
    return "The token of this page is no longer valid; open the URL that parley inspect printed";
  try {
    const { error } = (await response.json()) as { readonly error: { readonly message: string } };
    return error.message;
  } catch {
    return `The server answered ${response.status}`;
  }
}

export const session = signal<Session | undefined>(undefined);
export const agents = computed(() => session.value?.agents ?? []);

export function agentOf(id: string | undefined): AgentEntry | undefined {
  return agents.value.find((agent) => agent.id === id);
}

export async function loadSession(): Promise<void> {
  session.value = (await (await ask("GET", "session")).json()) as Session;
}

export async function connectTo(request: ConnectRequest): Promise<AgentEntry> {
  const entry = (await (await ask("POST", "agents", request)).json()) as AgentEntry;
  await loadSession();
  return entry;
}

export async function disconnect(id: string): Promise<void> {
  await ask("DELETE", `agents/${id}`);
  await loadSession();
}

export async function sendRaw(request: RawRequest): Promise<void> {
  await ask("POST", "wire", request);
}

/** The records of the wire after a number, as they come. Ends when the server ends the connection. */
export async function* wireAfter(after: number): AsyncGenerator<readonly WireRecord[], void, void> {
  const { body } = await ask("GET", `wire?after=${after}`);
  if (body === null) return;
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (lines.length > 0) yield lines.map((line) => JSON.parse(line) as WireRecord);
  }
}
