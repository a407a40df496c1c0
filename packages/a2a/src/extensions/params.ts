import type { Logger } from "../base/index.ts";
import type { AgentCard, AgentExtension } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";
import { isHarmless } from "./failures.ts";
import { misfits, fit } from "./values.ts";

/** How a card declares an extension. The first one counts. */
export function declarationOf(uri: string, card: AgentCard): AgentExtension | undefined {
  return card.capabilities.extensions?.find((each) => each.uri === uri);
}

/** `params` of an extension on a card, as its schema gives them. They come from a stranger: what does not fit is a line in the log. */
export function paramsOf(extension: AnyExtension, card: AgentCard, logger: Logger): unknown {
  const { uri, paramsSchema } = extension;
  const params = declarationOf(uri, card)?.params;
  if (paramsSchema === undefined || params === undefined) return undefined;
  try {
    const result = fit(paramsSchema, params);
    if (result.ok) return result.value;
    const fields = misfits(paramsSchema, "params", params);
    logger.warn("The params of an extension on the card do not fit its schema", { uri, fields });
  } catch (mistake) {
    if (!isHarmless(extension)) throw mistake;
    logger.warn("The params of an extension on the card cannot be checked, and are left unread", {
      uri,
      cause: mistake,
    });
  }
  return undefined;
}
