import { A2AError, connect, type Client } from "@parley/a2a";
import { grpcWebBinding } from "@parley/grpc/web";

/** Reports each chunk to the test, if the test defines this function. */
declare const tellTest: ((chunk: string) => Promise<void>) | undefined;

/** The actions of the page. All of them return plain data. */
const actions = {
  /** Sends a message, and returns the text of the answer's artifacts. */
  async send(url: string, binding: string, text: string) {
    const { task } = await (await clientOf(url, binding)).sendMessage(text);
    return { state: task?.status.state, texts: task?.artifacts?.map((artifact) => artifact.parts[0]?.text) };
  },

  /** Streams a message, and returns the chunks in order of arrival. A task in the middle replaces all earlier chunks. */
  async stream(url: string, binding: string, text: string) {
    const seen: string[] = [];
    for await (const event of (await clientOf(url, binding)).sendStreamingMessage(text)) {
      const { artifacts = [], status } = event.task ?? {};
      if (status !== undefined && seen.length > 0) {
        seen.splice(0, seen.length, ...artifacts.map(({ parts }) => parts[0]?.text ?? ""), status.state);
      }
      const chunk = event.artifactUpdate?.artifact.parts[0]?.text ?? event.statusUpdate?.status.state;
      if (chunk === undefined) continue;
      seen.push(chunk);
      if (typeof tellTest === "function") await tellTest(chunk);
    }
    return seen;
  },

  /** Returns the error of a failing operation. */
  async fail(url: string, binding: string, operation: "unknownTask" | "noAgent" | "emptyMessage") {
    try {
      if (operation === "noAgent") await connect(`${url}/nowhere`, { retry: false });
      const client = await clientOf(url, binding);
      await (operation === "unknownTask" ? client.getTask("unknown") : client.sendMessage([]));
    } catch (error) {
      if (!(error instanceof A2AError)) throw error;
      return {
        name: error.name,
        code: error.code,
        fields: error.fields.map(({ field }) => field),
        message: error.message,
      };
    }
    throw new Error("did not fail");
  },

  /** Returns the response headers that the page can read. */
  async headers(url: string, init: RequestInit & { cache?: string }) {
    const answer = await fetch(url, init);
    return { status: answer.status, headers: Object.fromEntries(answer.headers) };
  },
};

function clientOf(url: string, binding: string): Promise<Client> {
  return connect(url, { binding, bindings: [grpcWebBinding()], reconnect: { minDelay: 1 } });
}

export type Actions = typeof actions;

Object.assign(globalThis, { parley: actions });
