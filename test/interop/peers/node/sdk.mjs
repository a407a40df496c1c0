// The JavaScript SDK, used as in its guide: sdk.mjs URL CONVERSATIONS. Sends each message twice: for an answer, then for a stream.

import { randomUUID } from "node:crypto";
import { SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

const [, , url, conversations] = process.argv;
const client = await new ClientFactory().createFromUrl(url);

const partOf = (said) =>
  typeof said === "string"
    ? { text: said }
    : { raw: Buffer.from(said.raw).toString("base64"), mediaType: said.mediaType };

const shownOf = (parts = []) =>
  parts
    .map(({ content: { $case, value }, filename }) =>
      $case === "text" ? value : $case === "raw" ? `[${filename}: ${value.toString()}]` : "",
    )
    .join("");

const requestOf = (said, task) =>
  SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: "ROLE_USER",
      parts: [partOf(said)],
      taskId: task?.id,
      contextId: task?.contextId,
    },
  });

/** The text shown to the user: artifacts, else the status message. */
const taskShown = ({ artifacts, status }) =>
  artifacts.map(({ parts }) => shownOf(parts)).join("") || shownOf(status.message?.parts);

const ways = {
  "": async (said, task) => {
    const answer = await client.sendMessage(requestOf(said, task));
    return "status" in answer ? [taskShown(answer), answer] : [shownOf(answer.parts)];
  },
  " stream": async (said, task) => {
    let [live, last] = ["", ""];
    for await (const { payload } of client.sendMessageStream(requestOf(said, task))) {
      const { $case, value } = payload;
      if ($case === "message") return [shownOf(value.parts)];
      if ($case === "task") task = value;
      if ($case === "artifactUpdate") live += shownOf(value.artifact.parts);
      if ($case === "statusUpdate") last = shownOf(value.status.message?.parts);
    }
    return [live || last, task];
  },
};

for (const [name, conversation] of Object.entries(JSON.parse(conversations))) {
  for (const [way, ask] of Object.entries(ways)) {
    let task;
    for (const [turn, said] of conversation.entries()) {
      const step = `${name}.${turn}${way}`;
      try {
        const [result, next] = await ask(said, task);
        task = next;
        console.log(JSON.stringify({ step, result }));
      } catch (error) {
        console.log(JSON.stringify({ step, error: error.name, text: error.message }));
      }
    }
  }
}
process.exit(0);
