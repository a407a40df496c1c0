import {
  A2AError,
  withFields,
  type Artifact,
  type Message,
  type Part,
  type SendMessageResponse,
  type StandardSchema,
  type StreamResponse,
  type Task,
} from "../model/index.ts";
// Not with import(): a bundler that splits nothing then keeps what both sides use in wrappers, and connectJsonRpc grows by 420 bytes.
import { checkData } from "./check-data.ts";
import { dataInParts } from "./found-data.ts";

/** Where `dataOf()` looks: the answer of a send, an event of a stream, a task, a message, an artifact, or parts. */
export type DataSource = SendMessageResponse | Partial<StreamResponse> | Task | Message | Artifact | readonly Part[];

/**
 * The data of an answer, checked by a schema of zod, valibot, ArkType or any other library of Standard Schema, and with its type. It
 * is the first value that fits: of a message and an artifact in the order of the parts, of a task in the newest artifact first, and
 * last in the message of its status. Data parts count, and texts and files whose media type is JSON.
 *
 * @throws A2AError `InvalidResponse` where nothing fits. Its `fields` say why, with paths such as
 * `task.artifacts[0].parts[0].data.amount`.
 *
 * @example
 * ```ts
 * import * as z from "zod";
 *
 * const Forecast = z.object({ city: z.string(), degrees: z.number() });
 * const response = await client.sendMessage("Will it rain in Basel?");
 * const { degrees } = await dataOf(response, Forecast);
 * ```
 */
export async function dataOf<Output>(source: DataSource, schema: StandardSchema<Output>): Promise<Output> {
  const found = listsOf(source).flatMap(([path, parts]) => dataInParts(parts, path));
  const checked = await checkData(found, schema);
  if (checked.fits) return checked.value;
  const { fields } = checked;
  const text = fields.length === 0 ? "The answer has no data" : withFields("The answer has other data", fields);
  throw new A2AError("InvalidResponse", text, { fields });
}

/** Lists of parts with their paths, in the order in which they are looked through. */
type PartList = readonly [path: string, parts: readonly Part[]];

function listsOf(source: DataSource): readonly PartList[] {
  if (isParts(source)) return [["parts", source]];
  if ("messageId" in source) return [["message.parts", source.parts]];
  if ("artifactId" in source) return [["artifact.parts", source.parts]];
  if ("status" in source) return listsOfTask(source);
  const { task, message, statusUpdate, artifactUpdate } = source as Partial<StreamResponse>;
  if (task !== undefined) return listsOfTask(task);
  if (message !== undefined) return [["message.parts", message.parts]];
  if (artifactUpdate !== undefined) return [["artifactUpdate.artifact.parts", artifactUpdate.artifact.parts]];
  return [["statusUpdate.status.message.parts", statusUpdate?.status.message?.parts ?? []]];
}

function listsOfTask({ artifacts = [], status }: Task): readonly PartList[] {
  return [
    ...artifacts.map(({ parts }, at): PartList => [`task.artifacts[${at}].parts`, parts]).toReversed(),
    ["task.status.message.parts", status.message?.parts ?? []],
  ];
}

function isParts(source: DataSource): source is readonly Part[] {
  return Array.isArray(source);
}
