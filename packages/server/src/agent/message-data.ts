import { nestsDeeper } from "@parley/a2a/internal/base/json-text";
import { partsOf, type Content, type StandardSchema } from "@parley/a2a/internal/model/index";
import { MessageRefused, type TurnBase } from "@parley/a2a/internal/protocol/index";
import { checkData, dataInParts, type FoundData } from "@parley/a2a/internal/schema/data";
import { withForm } from "./form.ts";

/** The first value in a message that fits a schema. */
export async function messageData<Output>(
  { message, acceptedOutputModes }: Pick<TurnBase, "message" | "acceptedOutputModes">,
  schema: StandardSchema<Output>,
  ask: Content | undefined,
): Promise<Output> {
  const found = dataInParts(message.parts, "message.parts");
  const checked = await checkData(found.length === 0 && ask !== undefined ? objectInText(message) : found, schema);
  if (checked.fits) return checked.value;
  const missing = [{ field: "message.parts", description: "has no data part" }];
  const question = ask === undefined ? undefined : withForm(partsOf(ask), schema, acceptedOutputModes);
  throw new MessageRefused(checked.fields.length === 0 ? missing : checked.fields, { ask: question });
}

/** As deep as requests may nest by default (`limits.depth`). */
const maxDepth = 64;

/** The object of a message that is one text, and all of it a JSON object: many clients can send text alone. */
function objectInText({ parts }: TurnBase["message"]): readonly FoundData[] {
  const [part, ...others] = parts;
  const text = part?.text?.trim() ?? "";
  if (others.length > 0 || !text.startsWith("{") || nestsDeeper(text, maxDepth)) return [];
  try {
    return [{ field: "message.parts[0].text", value: JSON.parse(text) as unknown }];
  } catch {
    return [];
  }
}
