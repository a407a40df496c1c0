import { ClientFactory } from "@a2a-js/sdk/client";
import { AgentCard, SendMessageRequest } from "@a2a-js/sdk";
import { answerParent } from "../ipc.ts";
import { cardOf, measured, type ClientLoad, type ClientOutcome } from "./client.ts";

answerParent({
  async read({ url, text }: ClientLoad): Promise<ClientOutcome> {
    const client = await new ClientFactory().createFromAgentCard(AgentCard.fromJSON(cardOf(url)));
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
    return measured(client.sendMessageStream(SendMessageRequest.fromJSON({ message })), ({ payload }) => {
      if (payload?.$case !== "artifactUpdate") return undefined;
      const content = payload.value.artifact?.parts[0]?.content;
      return content?.$case === "text" ? content.value : undefined;
    });
  },
});
