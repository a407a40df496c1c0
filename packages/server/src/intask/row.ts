import type { Credentials } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, FeatureRow, Store, TaskKey } from "../store/index.ts";

/* How a request is stored: as a row of a feature, with its task (docs/decisions/identity.md). */

/** The rows of requests. An answer gives its row a `due`, and so does a message that comes while a turn waits: the turn has to look. */
export const inTaskFeature = "authorization";

/** Largest credential, in bytes of JSON. */
export const maxCredentialBytes: number = 16 << 10;

/** The value of a row, as JSON. Its key is the id of the request. */
export interface StoredRequest {
  readonly form: keyof Credentials;
  /** For the page. */
  readonly reason: string;
  readonly agent: string;
  /** Who the agent asks for: the subject of the principal, and its organization. */
  readonly asker: string;
  readonly label?: string;
  readonly inMessage?: true;
  /** When it ends, in milliseconds since the Unix epoch. */
  readonly expires: number;
  /** Random: the link of a request that was opened again under the same id is another one. */
  readonly nonce: string;
  /** What the callback and the status message show. */
  readonly token: string;
  readonly url: string;
  /** For `oauth`: where the person is sent. */
  readonly target?: string;
  /** `given`: the credential has come, and is in `sealed`. */
  readonly state: "open" | "given" | "denied";
  /** Sealed: what only this server may know of an open request (PKCE), or the credential. */
  readonly sealed?: string;
  /** For `oauth`: the code verifier stays until the code is exchanged. */
  readonly verifier?: string;
}

/** A row as it was read. */
export interface FoundRequest {
  readonly key: string;
  readonly row: FeatureRow;
  readonly request: StoredRequest;
}

/** The request of a task under an id. */
export async function findRequest(
  store: Pick<Store, "features">,
  task: TaskKey,
  id: string,
): Promise<FoundRequest | undefined> {
  const rows = await store.features(task, task.taskId, inTaskFeature);
  const row = rows.find(({ key }) => key === id);
  return row && { key: row.key, row, request: JSON.parse(row.value) as StoredRequest };
}

/** Whether the request takes an answer: nothing has come, and the turn has no other message to go to. */
export function isOpen({ row, request }: FoundRequest, now: number): boolean {
  return request.state === "open" && row.due === undefined && now < request.expires;
}

/** Stores a request. */
export function setRequest(id: string, request: StoredRequest): FeatureEffect {
  return { effect: "feature", op: "set", feature: inTaskFeature, key: id, value: JSON.stringify(request) };
}

/** Changes a request, if it is as it was read. `due`: tells the turn that waits, in whatever process it does. */
export function changeRequest({ key, row }: FoundRequest, request: StoredRequest, due: number): FeatureEffect {
  const before = row.due === undefined ? { value: row.value } : { value: row.value, due: row.due };
  return { effect: "feature", op: "set", feature: inTaskFeature, key, value: JSON.stringify(request), due, if: before };
}

/** Deletes a request. */
export function deleteRequest(id: string): FeatureEffect {
  return { effect: "feature", op: "delete", feature: inTaskFeature, key: id };
}

/** What a sealed value belongs to. A value that is copied to another row, or kept for another use, does not open. */
export function boundTo(
  use: "credential" | "verifier",
  { agent, owner, taskId }: TaskKey,
  nonce: string,
): readonly string[] {
  return [use, agent, owner, taskId, nonce];
}
