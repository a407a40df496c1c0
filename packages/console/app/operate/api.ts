import { signal } from "@preact/signals";
import type { ActResult } from "@parley/server/internal/operate/port";
import type { OperatorsAnswer, OperatorsEntry } from "../../src/api.ts";
import { ownHeaders } from "../server.ts";

/* What the application asks of the API of operators. */

/** The API of operators. `undefined`: the console has none. */
export const operators = signal<OperatorsEntry | undefined>(undefined);

/** Why the API did not let the user in. Empty: it did, or it was not asked. */
export const refusedBy = signal("");

/** Credentials of the operator, as headers. They stay in this tab. Absent: those of the user, and of the page. */
let credentials = JSON.parse(sessionStorage.getItem("operator") ?? "null") as Readonly<Record<string, string>> | null;

type Inputs = Readonly<Record<string, string | number | boolean | undefined>>;

/** Asks whether there is an API of operators. */
export async function findOperators(): Promise<void> {
  const response = await fetch("./api/operators", { headers: ownHeaders(), credentials: "omit" });
  if (!response.ok) return;
  operators.value = ((await response.json()) as OperatorsAnswer).operators ?? undefined;
}

/** Uses credentials from now on. Rejects if the API does not accept them. */
export async function signInAsOperator(headers: Readonly<Record<string, string>>): Promise<void> {
  credentials = headers;
  await read("/v1/nodes");
  sessionStorage.setItem("operator", JSON.stringify(headers));
}

/** Reads. `undefined`: there is no such task. */
export async function read<Answer>(path: string, inputs: Inputs = {}): Promise<Answer | undefined> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(inputs)) if (value !== undefined) query.set(name, String(value));
  const response = await send("GET", query.size === 0 ? path : `${path}?${query.toString()}`);
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(await reasonOf(response));
  return (await response.json()) as Answer;
}

/** Acts, as `POST /v1/acts/NAME`. */
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
    // A browser would ask for a password itself.
    credentials: "omit",
    headers: { ...ownHeaders(), ...credentials, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body }),
  });
  if (response.status !== 401 && response.status !== 403) {
    refusedBy.value = "";
    return response;
  }
  const reason = await reasonOf(response);
  // Who may read some tasks, or may not act, stays signed in.
  if (response.status === 401 || /^\/v1\/(?:tasks|counts)\b/.test(path)) refusedBy.value = reason;
  throw new Error(reason);
}

async function reasonOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { readonly error: { readonly message: string } };
    return error.message;
  } catch {
    return `The API of operators answered ${response.status}`;
  }
}
