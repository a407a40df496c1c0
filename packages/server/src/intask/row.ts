import { fromBase64Url } from "@parley/a2a/internal/base/bytes";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { type JsonObject, type JsonValue, toBase64 } from "@parley/a2a/internal/model/index";
import type { Credentials } from "@parley/a2a/internal/protocol/index";
import type { Seal } from "../seal/index.ts";
import { stateOf, type FeatureEffect, type FeatureRow, type Store, type TaskKey } from "../store/index.ts";
import type { InTaskParts } from "./port.ts";
import { storedJson } from "@parley/a2a/internal/base/json";
import { isObject } from "@parley/a2a/internal/model/schema";

/* How a request is stored: as a row of a feature, with its task (docs/decisions/identity.md). */

/** The feature of authorization requests. An answer, or a message to a waiting turn, sets `due`. The turn then reads the row. */
export const inTaskFeature = "authorization";

/** Largest credential, in bytes of JSON. */
export const maxCredentialBytes: number = 16 << 10;

/** The value of a row, as JSON. Its key is the id of the request. */
export interface StoredRequest {
  readonly form: keyof Credentials;
  /** For the page. */
  readonly reason: string;
  readonly agent: string;
  /** The principal: its subject and organization. */
  readonly asker: string;
  readonly label?: string;
  readonly inMessage?: true;
  /** In milliseconds since the Unix epoch. */
  readonly expires: number;
  /** Random, so that a request that is opened again under the same id gets another link. */
  readonly nonce: string;
  /** In the callback and the status message. */
  readonly token: string;
  readonly url: string;
  /** For `oauth`: the authorization URL. */
  readonly target?: string;
  /** `given`: the credential is in `sealed`. */
  readonly state: "open" | "given" | "denied";
  readonly sealed?: string;
  /** For `oauth`: the sealed code verifier, until the code is exchanged. */
  readonly verifier?: string;
}

const requestJson = storedJson<StoredRequest>();

/** A row as it was read. */
export interface FoundRequest {
  readonly row: FeatureRow;
  readonly request: StoredRequest;
}

export async function findRequest(
  store: Pick<Store, "features">,
  task: TaskKey,
  id: string,
): Promise<FoundRequest | undefined> {
  const rows = await store.features(task, task.taskId, inTaskFeature);
  const row = rows.find(({ key }) => key === id);
  return row && { row, request: requestJson.read(row.value) };
}

/** Returns whether the request is still open: not answered, not expired, and not replaced by a message to the turn. */
export function isOpen({ row, request }: FoundRequest, now: number): boolean {
  return request.state === "open" && row.due === undefined && now < request.expires;
}

export function setRequest(id: string, request: StoredRequest): FeatureEffect {
  return { effect: "feature", op: "set", feature: inTaskFeature, key: id, value: requestJson.write(request) };
}

/** Changes a request, if it has not changed since it was read. `due` wakes the waiting turn, in any process. */
function changeRequest({ row }: FoundRequest, request: StoredRequest, due: number): FeatureEffect {
  const value = requestJson.write(request);
  return { effect: "feature", op: "set", feature: inTaskFeature, key: row.key, value, due, if: stateOf(row) };
}

/** The binding of a sealed value, so that it cannot be opened in another row or for another use. */
export function boundTo(
  use: "credential" | "verifier",
  { agent, owner, taskId }: TaskKey,
  nonce: string,
): readonly string[] {
  return [use, agent, owner, taskId, nonce];
}

/* The token of a link. It is sealed, so it cannot be forged, and does not reveal the owner of the task. */

/** The content of a token. */
export interface Linked {
  readonly task: TaskKey;

  readonly id: string;
  readonly nonce: string;
}

const tokenJson = storedJson<readonly [agent: string, owner: string, taskId: string, id: string, nonce: string]>();
const bound = ["link"];
/** Tokens of this server are shorter, because names of owners and agents are short. */
const longest = 8192;

export async function makeToken(seal: Seal, { task: { agent, owner, taskId }, id, nonce }: Linked): Promise<string> {
  const sealed = await seal.seal([agent, owner, taskId, id, nonce], bound);
  return sealed.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** `undefined`: not a token of this server. */
export async function readToken(seal: Seal, token: string | null | undefined): Promise<Linked | undefined> {
  if (typeof token !== "string" || token.length > longest) return undefined;
  const parts = token.split(".").map(fromBase64Url);
  const bytes = parts.filter((part) => part !== undefined);
  if (bytes.length < parts.length) return undefined;
  try {
    const [agent, owner, taskId, id, nonce] = await seal.open(bytes.map(toBase64).join("."), bound, tokenJson);
    return { task: { agent, owner, taskId }, id, nonce };
  } catch {
    return undefined;
  }
}

/* The answer to a request, before it is stored in the row. */

/** A credential, the parameters of a redirect by an authorization server, or a refusal. */
export type Answer =
  | { readonly kind: "credential"; readonly value: JsonValue }
  | { readonly kind: "redirect"; readonly parameters: string }
  | { readonly kind: "denied" };

/** Why a credential does not fit this form. */
export function problemOf(form: StoredRequest["form"], value: JsonValue | undefined): string | undefined {
  if (value === undefined) return "is required";
  if (utf8Length(JSON.stringify(value)) > maxCredentialBytes) return `takes more than ${maxCredentialBytes} bytes`;
  switch (form) {
    case "approval":
      return value === true ? undefined : "must be true";
    case "secret":
      return typeof value === "string" && value !== "" ? undefined : "must be a text";
    case "oauth":
      return isTokens(value) ? undefined : "must be an object with accessToken";
    default:
      return undefined;
  }
}

function isTokens(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  const { accessToken } = value;
  return typeof accessToken === "string" && accessToken !== "";
}

export function isJsonObject(value: JsonValue): value is JsonObject {
  return isObject(value);
}

export async function answered(
  { seal, host }: Pick<InTaskParts, "seal" | "host">,
  task: TaskKey,
  found: FoundRequest,
  answer: Answer,
): Promise<FeatureEffect> {
  const { request } = found;
  const due = Math.floor(host.clock.now());
  if (answer.kind === "denied") return changeRequest(found, { ...request, state: "denied" }, due);
  const sealed = await seal.seal(answer, boundTo("credential", task, request.nonce));
  return changeRequest(found, { ...request, state: "given", sealed }, due);
}

type GivenAnswer = Exclude<Answer, { readonly kind: "denied" }>;
const answerJson = storedJson<GivenAnswer>();

export async function openAnswer(
  seal: Seal,
  task: TaskKey,
  { nonce, sealed = "" }: StoredRequest,
): Promise<GivenAnswer> {
  return seal.open(sealed, boundTo("credential", task, nonce), answerJson);
}
