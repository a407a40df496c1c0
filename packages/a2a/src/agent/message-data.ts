import type { Content, Message, StandardSchema } from "../model/index.ts";
import { MessageRefused } from "../protocol/index.ts";
import { checkData } from "../schema/check-data.ts";
import { dataInParts } from "../schema/found-data.ts";

/** The first value in a message that fits a schema. */
export async function messageData<Output>(
  { parts }: Message,
  schema: StandardSchema<Output>,
  ask: Content | undefined,
): Promise<Output> {
  const found = dataInParts(parts, "message.parts");
  const checked = await checkData(found, schema);
  if (checked.fits) return checked.value;
  const missing = [{ field: "message.parts", description: "has no data part" }];
  throw new MessageRefused(checked.fields.length === 0 ? missing : checked.fields, { ask });
}
