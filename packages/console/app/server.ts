import { computed, signal } from "@preact/signals";
import { readOnly } from "./saved.ts";
import type { AgentCard } from "@parley/a2a";
import type { FetchLike } from "@parley/a2a/internal/client/index";
import type {
  AgentEntry,
  ConnectRequest,
  LoginEvent,
  RawRequest,
  SchemeLogin,
  Session,
  SignIn,
  WireRecord,
} from "../src/api.ts";
import type { Recorder } from "../src/recording.ts";

/* Requests of the application to its server. */

/** The token of `parley inspect`, from the URL of the page. Stored in this tab, and removed from the URL. */
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

/** Headers with credentials for the agents of the server. Stored in this tab only. */
let credentials = JSON.parse(sessionStorage.getItem("credentials") ?? "{}") as Readonly<Record<string, string>>;

/** Headers of every request to the origin of the page. */
export function ownHeaders(): Readonly<Record<string, string>> {
  return { ...credentials, ...(token !== undefined && { "x-parley-console": token }) };
}

/** How to sign in, if the server requires it. */
export const signIn = signal<SignIn | undefined>(undefined);

/** Uses credentials for all further requests. Rejects if the server does not accept them. */
export async function signInWith(headers: Readonly<Record<string, string>>): Promise<void> {
  credentials = headers;
  await loadSession();
  sessionStorage.setItem("credentials", JSON.stringify(headers));
  signIn.value = undefined;
}

/** A failed request to the server. Its message is for the user. */
class ServerError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

async function ask(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(`./api/${path}`, {
    method,
    credentials: credentialsMode,
    headers: { ...ownHeaders(), ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  if (response.ok) return response;
  throw new ServerError(await reasonOf(response), response.status);
}

async function reasonOf(response: Response): Promise<string> {
  if (response.status === 401) return "The server does not accept these credentials";
  try {
    const { error } = (await response.json()) as { readonly error: { readonly message: string } };
    return error.message;
  } catch {
    return `The server answered ${response.status}`;
  }
}

export const session = signal<Session | undefined>(undefined);
export const agents = computed(() => readOnly.value?.agents ?? session.value?.agents ?? []);

export function agentOf(id: string | undefined): AgentEntry | undefined {
  return agents.value.find((agent) => agent.id === id);
}

async function loadSession(): Promise<void> {
  session.value = (await (await ask("GET", "session")).json()) as Session;
}

/** If the server uses Basic, `omit` prevents the browser's own password prompt. */
let credentialsMode: RequestCredentials = "same-origin";

/** Loads the session. If the server requires it, loads how to sign in instead. */
export async function begin(): Promise<void> {
  const how = (await (await fetch("./sign-in")).json()) as SignIn;
  if (how.basic) credentialsMode = "omit";
  try {
    await loadSession();
  } catch (thrown) {
    if (!(thrown instanceof ServerError) || thrown.status !== 401) throw thrown;
    if (how.mode === "inspect")
      throw new Error("The token of this page is no longer valid; open the URL that parley inspect printed");
    signIn.value = how;
  }
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

/** Reconnects to an agent with the current stored logins. */
export async function reconnect(id: string): Promise<void> {
  await ask("POST", `agents/${id}`);
  await loadSession();
}

export async function logOut(id: string): Promise<void> {
  await ask("DELETE", `agents/${id}/login`);
  await loadSession();
}

/** Logs in to an agent through the console's server. Yields the user's next steps as events; `signal` cancels. */
export async function* logIn(
  id: string,
  schemes: readonly SchemeLogin[],
  signal: AbortSignal,
): AsyncGenerator<LoginEvent, void, void> {
  const { body } = await ask("POST", `agents/${id}/login`, schemes, signal);
  for await (const events of linesOf<LoginEvent>(body)) {
    if (events.some(({ kind }) => kind === "done")) await loadSession();
    yield* events;
  }
}

/** The card that this server sends to callers, with its signatures. */
export async function servedCard(path: string): Promise<AgentCard> {
  const response = await fetch(path, { credentials: credentialsMode, headers: ownHeaders() });
  if (!response.ok) throw new ServerError(await reasonOf(response), response.status);
  return (await response.json()) as AgentCard;
}

/** Sends a request unchanged. With `parley inspect`, its server sends the request; otherwise the page sends and records it. */
export async function sendRaw(request: RawRequest, recorder: Recorder): Promise<void> {
  if (session.value?.mode !== "server") return void (await ask("POST", "wire", request));
  const { method, url, headers, body } = request;
  const fetch = await recordedFetch(request.agent, recorder);
  const init = {
    method,
    headers: { ...headers, ...ownHeaders() },
    signal: AbortSignal.timeout(60_000),
    redirect: "manual" as const,
  };
  await (await fetch(url, { ...init, ...(body !== undefined && { body }) })).text();
}

/** A recording `fetch` for this page's calls to an agent of its server. */
export async function recordedFetch(agent: string, recorder: Recorder): Promise<FetchLike> {
  const { recordingFetch, secretsOf } = await import("../src/recording.ts");
  return recordingFetch(
    recorder,
    agent,
    (url, init) => fetch(url, { ...init, credentials: credentialsMode }),
    () => secretsOf(ownHeaders(), agentOf(agent)?.card),
  );
}

/** Streams the wire records after a number. Ends when the server closes the connection. */
export async function* wireAfter(after: number): AsyncGenerator<readonly WireRecord[], void, void> {
  yield* linesOf<WireRecord>((await ask("GET", `wire?after=${after}`)).body);
}

/** Streams lines of JSON, in batches. */
async function* linesOf<Line>(body: Response["body"]): AsyncGenerator<readonly Line[], void, void> {
  if (body === null) return;
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (lines.length > 0) yield lines.map((line) => JSON.parse(line) as Line);
  }
}
