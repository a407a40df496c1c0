import { Role, TaskState, type Artifact, type Message } from "@a2a-js/sdk";
import {
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
  ServiceParameters,
  withA2AExtensions,
  type BeforeArgs,
  type CallInterceptor,
} from "@a2a-js/sdk/client";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutionEvent,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { artifactOf, cardOf, JsAgent, listening, partsOf, requestOf, serveCard, submittedOf } from "./agent-js.ts";
import type { RunningServer } from "./peer.ts";

/* The Timestamp extension, implemented like the JavaScript sample, on the official SDK. */

const path = "github.com/a2aproject/a2a-samples/extensions/timestamp/v1";
const uri = `https://${path}`;
const key = `${path}/timestamp`;

interface Stamped {
  metadata: { [key: string]: unknown } | undefined;
}

function stamp(things: readonly (Stamped | undefined)[], time: string): void {
  for (const thing of things) {
    if (thing !== undefined) thing.metadata = { [key]: time, ...thing.metadata };
  }
}

/** The agent's messages and artifacts in an event. */
function saidIn({ kind, data }: AgentExecutionEvent): readonly (Stamped | undefined)[] {
  switch (kind) {
    case "message":
      return [data];
    case "statusUpdate":
      return [data.status?.message];
    case "artifactUpdate":
      return [data.artifact];
    case "task":
      return [...data.artifacts, ...data.history.filter(({ role }) => role === Role.ROLE_AGENT), data.status?.message];
  }
}

/** Reports the stamp of the message, and stamps its answer on request. */
class Stamper extends JsAgent {
  readonly #time: string;

  constructor(time: string) {
    super();
    this.#time = time;
  }

  execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage, context } = request;
    const asked = context.requestedExtensions?.includes(uri) === true;
    if (asked) context.addActivatedExtension(uri);
    const say = (event: AgentExecutionEvent): void => {
      if (asked) stamp(saidIn(event), this.#time);
      bus.publish(event);
    };
    const status = (state: TaskState, words?: string): void => {
      const message: Message | undefined =
        words === undefined
          ? undefined
          : {
              role: Role.ROLE_AGENT,
              messageId: crypto.randomUUID(),
              parts: partsOf(words),
              taskId,
              contextId,
              extensions: [],
              metadata: {},
              referenceTaskIds: [],
            };
      const timestamp = new Date().toISOString();
      say(AgentEvent.statusUpdate({ taskId, contextId, status: { state, message, timestamp }, metadata: {} }));
    };
    say(submittedOf(request));
    status(TaskState.TASK_STATE_WORKING, "working");
    const artifact = artifactOf("heard", String(userMessage.metadata?.[key]));
    say(AgentEvent.artifactUpdate({ taskId, contextId, artifact, lastChunk: true, append: false, metadata: {} }));
    status(TaskState.TASK_STATE_COMPLETED, "done");
    bus.finished();
    return Promise.resolve();
  }
}

/** Starts the agent. `seconds`: the time of its clock. */
export async function startJsServer(seconds: number): Promise<RunningServer> {
  const { app, url, stop } = await listening();
  const extension = {
    uri,
    description: "Adds timestamps to messages and artifacts.",
    required: false,
    params: undefined,
  };
  const card = cardOf("JavaScript stamps", "Stamps what it says", { JSONRPC: `${url}/` }, [extension]);
  const time = new Date(seconds * 1000).toISOString();
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Stamper(time));
  serveCard(app, card);
  app.use("/", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return { url, stop };
}

/** The stamps and the texts of a streamed answer, in the order of its events. */
export interface Stamps {
  readonly stamps: readonly unknown[];
  readonly texts: readonly (string | undefined)[];
}

/** Calls an agent, and stamps the message. `seconds`: the time of the client's clock. */
export async function callFromJs(url: string, seconds: number): Promise<Stamps> {
  const stamping: CallInterceptor = {
    before(args: BeforeArgs) {
      const declared = args.agentCard.capabilities?.extensions.some((each) => each.uri === uri) === true;
      if (!declared || args.input?.method !== "sendMessageStream") return Promise.resolve();
      stamp([args.input.value.message], new Date(seconds * 1000).toISOString());
      args.options ??= {};
      args.options.serviceParameters = ServiceParameters.createFrom(
        args.options.serviceParameters,
        withA2AExtensions(uri),
      );
      return Promise.resolve();
    },
    after: () => Promise.resolve(),
  };
  const options = ClientFactoryOptions.createFrom(
    { transports: [new JsonRpcTransportFactory()] },
    { clientConfig: { interceptors: [stamping] } },
  );
  const client = await new ClientFactory(options).createFromUrl(url);
  const stream = client.sendMessageStream(requestOf("hi"));
  const found: (Message | Artifact)[] = [];
  for await (const { payload } of stream) {
    const said = payload?.$case === "artifactUpdate" ? payload.value.artifact : undefined;
    const message = payload?.$case === "statusUpdate" ? payload.value.status?.message : undefined;
    found.push(...[said, message].filter((each) => each !== undefined));
  }
  return {
    stamps: found.map(({ metadata }) => metadata?.[key] ?? null),
    texts: found.map(({ parts }) => (parts[0]?.content?.$case === "text" ? parts[0].content.value : undefined)),
  };
}
