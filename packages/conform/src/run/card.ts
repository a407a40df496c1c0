import { codecV03 } from "@parley/a2a/internal/wires";
import type { Json, JsonMap } from "../acts/format.ts";
import { isMap, member } from "../acts/path.ts";
import { send, type Bounds } from "../call/http.ts";
import { LiveStream } from "../call/stream.ts";
import { ConformError } from "../error.ts";

/** Where a card is served (A2A 1.0 §8.2). */
const cardPath = "/.well-known/agent-card.json";

/** A card, and where it was found. */
export interface Found {
  readonly cardUrl: string;
  readonly card: JsonMap;
}

/**
 * Fetches the card of a version: from the URL itself where it names a JSON file, else from the well-known path below it,
 * then from that of its origin. Throws ConformError where none is found.
 */
export async function findCard(options: {
  readonly url: string;
  readonly version: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeout: number;
  readonly bounds: Bounds;
}): Promise<Found> {
  const { version, timeout, bounds } = options;
  const given = new URL(options.url);
  const base = given.href.replace(/[?#].*/, "").replace(/(?<!\/)\/+$/, "");
  const tries = given.pathname.endsWith(".json") ? [given.href] : [base + cardPath, given.origin + cardPath];
  const headers = { accept: "application/json", "a2a-version": version, ...options.headers };
  let problem = "";
  for (const cardUrl of new Set(tries)) {
    const answer = await send({ method: "GET", url: cardUrl, headers }, timeout, bounds).catch((error: unknown) => {
      bounds.signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConformError("NothingToTest", reason, { cause: error });
    });
    if (answer instanceof LiveStream) answer.close();
    else if (answer.status === 200) {
      const card = readCard(answer.json, version);
      if (card !== undefined) return { cardUrl, card };
    }
    if (problem === "") problem = `${cardUrl} answers ${answer.status} and no A2A ${version} card`;
  }
  throw new ConformError("NothingToTest", problem);
}

/** A card in the shape of 1.0, whatever its own shape is: all that tests of 0.3 ask of it stands in both. */
function readCard(value: Json | undefined, version: string): JsonMap | undefined {
  const isV1 = Array.isArray(member(value, "supportedInterfaces"));
  if (isV1 && (version !== "0.3" || member(value, "url") === undefined)) return isMap(value) ? value : {};
  try {
    return version === "0.3" ? (codecV03.decodeCard(value) as unknown as JsonMap) : undefined;
  } catch {
    return undefined;
  }
}
