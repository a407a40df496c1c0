import { TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { jsonRpcHandler, restHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { artifactOf, cardOf, JsAgent, listening, requestOf, serveCard, submittedOf } from "./agent-js.ts";
import type { RunningServer } from "./peer.ts";

/* An agent on the official JavaScript SDK, which does not support traces: it calls another agent without a traceparent. */

/** The request's header, as the SDK passes it to agents. */
function traceparentOf(headers: unknown): string {
  const value = typeof headers === "object" && headers !== null && "traceparent" in headers && headers.traceparent;
  return String(value);
}

/** Calls the agent behind it, then answers with the `traceparent` that it received. */
class Caller extends JsAgent {
  readonly #behind: string;

  constructor(behind: string) {
    super();
    this.#behind = behind;
  }

  async execute(asked: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, context } = asked;
    bus.publish(submittedOf(asked));
    const client = await new ClientFactory().createFromUrl(this.#behind);
    await client.sendMessage(requestOf("hello"));
    const artifact = artifactOf("traceparent", traceparentOf(context.state.get("headers")));
    bus.publish(
      AgentEvent.artifactUpdate({ taskId, contextId, artifact, lastChunk: true, append: false, metadata: {} }),
    );
    const state = TaskState.TASK_STATE_COMPLETED;
    const status = { state, message: undefined, timestamp: new Date().toISOString() };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: {} }));
    bus.finished();
  }
}

/** Starts the agent with all bindings. `behind`: the URL of the agent that it calls. */
export async function startJsServer(behind: string): Promise<RunningServer> {
  const { app, url, stop } = await listening();
  const rpc = new Server();
  const port = await new Promise<number>((resolve, reject) =>
    rpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const urls = { JSONRPC: `${url}/rpc`, "HTTP+JSON": `${url}/rest`, GRPC: `127.0.0.1:${port}` };
  const card = cardOf("JavaScript", "Returns its traceparent", urls);
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Caller(behind));
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  serveCard(app, card);
  app.use("/rpc", jsonRpcHandler(options));
  app.use("/rest", restHandler(options));
  rpc.addService(A2AService, grpcService({ ...options }));
  return {
    url,
    async stop() {
      rpc.forceShutdown();
      await stop();
    },
  };
}
