import { writeFile } from "node:fs/promises";
import { connect, text, type Artifact, type Client, type Task } from "@parley/a2a";
import { bytesOf, isRawPart } from "@parley/a2a/model";
import { generatingImage } from "./generating-image.ts";

/** A client that requests the sub-state. */
export type ImageClient = Client<typeof generatingImage>;

/** Connects to an agent that draws. */
export const connectTo = (url: string): Promise<ImageClient> => connect(url, { extensions: [generatingImage] });

/** An image in one of its versions. */
export interface Version {
  readonly task: Task;
  readonly artifact: Artifact;
}

/**
 * The latest version of an image in a conversation. Each version keeps the name of the artifact and has another id, so the client must find
 * the versions and choose the latest.
 */
export async function latest(client: ImageClient, contextId: string, name: string): Promise<Version | undefined> {
  let found: Version | undefined;
  for await (const task of client.tasks({ contextId, includeArtifacts: true })) {
    if (task.status.state !== "TASK_STATE_COMPLETED") continue;
    const artifact = task.artifacts?.find((each) => each.name === name);
    if (artifact === undefined || (found && timeOf(found.task) > timeOf(task))) continue;
    found = { task, artifact };
  }
  return found;
}

const timeOf = ({ status }: Task): number => Date.parse(status.timestamp ?? "") || 0;

/** Asks for an image. `base`: the version to change, whose task the new task refers to. `onWait`: the agent waits for its model. */
export async function ask(client: ImageClient, request: string, base?: Version, onWait = () => {}): Promise<Task> {
  const refers = base && { contextId: base.task.contextId ?? "", referenceTaskIds: [base.task.id] };
  let taskId = "";
  for await (const event of client.sendStreamingMessage({ message: { ...refers, parts: [text(request)] } })) {
    taskId ||= event.task?.id ?? event.statusUpdate?.taskId ?? "";
    if (event.ext(generatingImage)?.subState === "generating-image") onWait();
  }
  return client.getTask(taskId);
}

/** Has a sailboat drawn, and painted red. Returns both versions, the latest one last. */
export async function drawBoat(client: ImageClient, onWait?: () => void): Promise<readonly Version[]> {
  const first = await ask(client, "Generate an image of a sailboat on the ocean.", undefined, onWait);
  const { contextId = "" } = first;
  const name = first.artifacts?.[0]?.name ?? "";
  const boat = await latest(client, contextId, name);
  if (boat === undefined) throw new Error(first.status.message?.parts[0]?.text ?? "There is no boat");
  await ask(client, "Please modify the sailboat to be red.", boat, onWait);
  const red = await latest(client, contextId, name);
  return red === undefined ? [boat] : [boat, red];
}

// npx tsx refine.ts URL
if (process.argv[1]?.endsWith("refine.ts") === true) {
  const client = await connectTo(process.argv[2] ?? "http://127.0.0.1:4000");
  for (const [at, { artifact }] of (await drawBoat(client, () => console.log("…"))).entries()) {
    const part = artifact.parts.find(isRawPart);
    if (part !== undefined) await writeFile(`${at + 1}-${artifact.name}`, bytesOf(part));
    console.log(`${at + 1}-${artifact.name}: ${artifact.description}`);
  }
}
