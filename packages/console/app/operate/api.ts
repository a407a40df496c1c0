import { signal } from "@preact/signals";
import type { ActResult } from "@parley/server/internal/operate/port";
import type { OperatorsAnswer, OperatorsEntry } from "../../src/api.ts";
import { ownHeaders } from "../server.ts";

/* Requests of the application to the operators' API. */

/** The operators' API. `undefined`: the console has none. */
export const operators = signal<OperatorsEntry | undefined>(undefined);

/** Why the API rejected the user's credentials. Empty: it accepted them, or was not called. */
export const refusedBy = signal("");

/** Headers with the operator's credentials. Stored only in this tab. Default: the user's sign-in headers, and the headers of the page. */
let credentials = JSON.parse(sessionStorage.getItem("operator") ?? "null") as Readonly<Record<string, string>> | null;

/** Whether the API has accepted the credentials of this tab. */
export const isAccepted = signal(credentials !== null);

type Inputs = Readonly<Record<string, string | number | boolean | undefined>>;

/** Asks the server for the location of the operators' API. */
export async function findOperators(): Promise<void> {
  const response = await fetch("./api/operators", { headers: ownHeaders(), credentials: "omit" });
  if (!response.ok) return;
  operators.value = ((await response.json()) as OperatorsAnswer).operators ?? undefined;
}

/** Uses credentials for all further requests. Rejects if the API does not accept them. */
export async function signInAsOperator(headers: Readonly<Record<string, string>>): Promise<void> {
  credentials = headers;
  await read("/v1/nodes");
  sessionStorage.setItem("operator", JSON.stringify(headers));
}

/** Sends a GET request. `undefined`: the task does not exist. */
export async function read<Answer>(path: string, inputs: Inputs = {}): Promise<Answer | undefined> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(inputs)) if (value !== undefined) query.set(name, String(value));
  const response = await send("GET", query.size === 0 ? path : `${path}?${query.toString()}`);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(await reasonOf(response));
  return (await response.json()) as Answer;
}

/** Sends an act to `POST /v1/acts/NAME`. */
export async function act(name: string, inputs: Inputs): Promise<ActResult<object>> {
  const given = Object.fromEntries(Object.entries(inputs).filter(([, value]) => value !== undefined && value !== ""));
  const response = await send("POST", `/v1/acts/${name}`, JSON.stringify(given));
  if (!response.ok && response.status !== 404 && response.status !== 409) throw new Error(await reasonOf(response));
  return (await response.json()) as ActResult<object>;
}

async function send(method: string, path: string, body?: string): Promise<Response> {
  const { path: base = "" } = operators.value ?? {};
  const response = await fetch(base + path, {
    method,
    // Otherwise the browser shows its own password prompt.
    credentials: "omit",
    headers: { ...ownHeaders(), ...credentials, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body }),
  });
  if (response.status !== 401 && response.status !== 403) {
    refusedBy.value = "";
    isAccepted.value = true;
    return response;
  }
  const reason = await reasonOf(response);
  // A 403 for other paths does not sign the operator out: some operators may read only some tasks, or may not act.
  if (response.status === 401 || /^\/v1\/(?:tasks|counts)\b/.test(path)) refusedBy.value = reason;
  throw new Error(reason);
}

async function reasonOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { readonly error: { readonly message: string } };
    return error.message;
  } catch {
    return `The operators' API responded with status ${response.status}`;
  }
}
