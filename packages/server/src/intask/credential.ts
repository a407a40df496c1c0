import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import type { Seal } from "../seal/index.ts";
import type { FeatureEffect, TaskKey } from "../store/index.ts";
import type { InTaskParts } from "./parts.ts";
import { boundTo, changeRequest, maxCredentialBytes, type FoundRequest, type StoredRequest } from "./row.ts";

/* What comes as the answer to a request, on its way into the row. */

/** An answer: a credential, the parameters that an authorization server has redirected with, or a refusal. */
export type Answer =
  | { readonly kind: "credential"; readonly value: JsonValue }
  | { readonly kind: "redirect"; readonly parameters: string }
  | { readonly kind: "denied" };

/** Why a credential is not one for this form; `undefined` where it is. */
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
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { accessToken } = value as JsonObject;
  return typeof accessToken === "string" && accessToken !== "";
}

/** The row with the answer in it. */
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

/** The answer of a row. */
export async function openAnswer(
  seal: Seal,
  task: TaskKey,
  { nonce, sealed = "" }: StoredRequest,
): Promise<Exclude<Answer, { readonly kind: "denied" }>> {
  return (await seal.open(sealed, boundTo("credential", task, nonce))) as Exclude<Answer, { readonly kind: "denied" }>;
}
