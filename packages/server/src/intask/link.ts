import { fromBase64Url } from "@parley/a2a/internal/base/bytes";
import type { Bytes } from "@parley/a2a/internal/base/index";
import { toBase64 } from "@parley/a2a/internal/model/index";
import type { Seal } from "../seal/index.ts";
import type { TaskKey } from "../store/index.ts";

/* The token of a link. It is sealed, so it cannot be forged, and does not tell who owns the task. */

/** What a token stands for. */
export interface Linked {
  readonly task: TaskKey;
  /** Id of the request. */
  readonly id: string;
  readonly nonce: string;
}

const bound = ["link"];
/** No token of this server is longer: names of owners and agents are short. */
const longest = 8192;

/** Makes the token of a request. */
export async function makeToken(seal: Seal, { task: { agent, owner, taskId }, id, nonce }: Linked): Promise<string> {
  const sealed = await seal.seal([agent, owner, taskId, id, nonce], bound);
  return sealed.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Reads a token. `undefined`: it is not one of this server. */
export async function readToken(seal: Seal, token: string | null | undefined): Promise<Linked | undefined> {
  if (typeof token !== "string" || token.length > longest) return undefined;
  const parts = token.split(".").map(fromBase64Url);
  if (parts.includes(undefined)) return undefined;
  try {
    const opened = await seal.open((parts as readonly Bytes[]).map(toBase64).join("."), bound);
    const [agent, owner, taskId, id, nonce] = opened as [string, string, string, string, string];
    return { task: { agent, owner, taskId }, id, nonce };
  } catch {
    return undefined;
  }
}
