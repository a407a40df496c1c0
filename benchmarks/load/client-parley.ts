import { connect } from "@parley/a2a";
import { answerParent } from "../ipc.ts";
import { cardOf, measured, type ClientLoad, type ClientOutcome } from "./client.ts";

answerParent({
  async read({ url, text }: ClientLoad): Promise<ClientOutcome> {
    const client = await connect(cardOf(url));
    return measured(client.sendStreamingMessage(text), ({ artifactUpdate }) => artifactUpdate?.artifact.parts[0]?.text);
  },
});
