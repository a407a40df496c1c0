import { defineAgent, file, type Agent, type HistoryEntry, type Turn } from "@parley/node";
import { bytesOf, isRawPart } from "@parley/a2a/model";
import { generatingImage } from "./generating-image.ts";
import type { ImageModel } from "./model.ts";

/** Makes the agent that draws. Each message begins a task of its own; a finished image never changes: a change draws a new one. */
export function imageAgent(model: ImageModel): Agent {
  return defineAgent({
    name: "Image generator",
    description: "Draws images, and changes them as you wish.",
    version: "1.0.0",
    skills: [{ id: "draw", name: "Draw", description: "Draws an image, or changes one", tags: ["image"] }],
    defaultOutputModes: ["text/plain", "image/png"],
    extensions: [generatingImage],
    resumable: true,
    async *onMessage(turn) {
      const prompt = turn.task?.history?.[0]?.parts.map((part) => part.text ?? "").join(" ") ?? turn.text;
      if (prompt.trim() === "") {
        yield turn.reply("What shall I draw?");
        return;
      }
      let base: HistoryEntry | undefined;
      if (await model.changes(prompt)) {
        const meant = await meantBy(turn);
        if (meant.length !== 1) {
          yield turn.inputRequired(whichOne(meant));
          return;
        }
        [base] = meant;
      }
      const messageMetadata = turn.ext(generatingImage)?.subState("generating-image") ?? {};
      yield turn.working("Drawing", { messageMetadata });
      const part = base?.parts.find(isRawPart);
      const picture = await model.draw({
        prompt,
        key: turn.taskId,
        signal: turn.signal,
        ...(part && { base: { bytes: bytesOf(part), mediaType: part.mediaType ?? "image/png" } }),
      });
      if (picture === undefined) {
        yield turn.rejected("I cannot draw that.");
        return;
      }
      const { bytes, mediaType, description } = picture;
      const name = base?.name ?? picture.name;
      const parts = [file(bytes, { filename: name, mediaType })];
      yield turn.artifact({ artifactId: `image-${turn.taskId}`, name, description, parts });
    },
  });
}

/**
 * The images that a message can mean: the image that a part or an answer names, or the images of referenced tasks, or else the latest
 * version of each image of the conversation. Only this conversation is searched, because the caller wrote the ids in a message.
 */
async function meantBy({ context, message, task, text: said }: Turn): Promise<readonly HistoryEntry[]> {
  const history = await context.history({ limit: 1000, bytes: 16 * 1024 * 1024 });
  const images = history.filter(({ artifactId, parts }) => artifactId !== undefined && parts.some(isRawPart));
  const named = new Set(message.parts.map(({ metadata }) => metadata?.["artifactId"]));
  const exact = images.filter(({ artifactId }) => named.has(artifactId));
  if (exact.length > 0) return exact;
  const { referenceTaskIds } = message;
  if (referenceTaskIds !== undefined) return images.filter(({ taskId = "" }) => referenceTaskIds.includes(taskId));
  const latest = [...new Map(images.map((image) => [image.name, image])).values()];
  const answered = task === undefined ? [] : latest.filter(({ name = "" }) => said.includes(name));
  return answered.length > 0 ? answered : latest;
}

function whichOne(images: readonly HistoryEntry[]): string {
  if (images.length === 0) return "I find no image there. Which one shall I change?";
  return `Which one shall I change? ${images.map(({ name }) => name).join(", ")}`;
}
