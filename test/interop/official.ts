import { Role, TaskState, type SendMessageRequest, type StreamResponse } from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import * as old from "@a2a-js/sdk-0.3/client";
import { GrpcTransportFactory as OldGrpcTransportFactory } from "@a2a-js/sdk-0.3/client/grpc";
import type { BindingName } from "./steps.ts";

/** The official JavaScript SDKs: two readers of a task that is silent for a while. */

export interface Heard {
  /** The first event of the subscription. */
  readonly first: string;
  /** Its other events, and those of the stream that created the task. */
  readonly rest: readonly string[];
  readonly other: readonly string[];
}

const transports = {
  JSONRPC: () => new JsonRpcTransportFactory(),
  "HTTP+JSON": () => new RestTransportFactory(),
  GRPC: () => new GrpcTransportFactory(),
};

export async function quietV1(url: string, binding: BindingName, listening: () => void): Promise<Heard> {
  const client = await new ClientFactory({ transports: [transports[binding]()] }).createFromUrl(url);
  return twoReaders(
    client.sendMessageStream(request()),
    (id) => client.resubscribeTask({ tenant: "", id }),
    glance,
    ({ payload }) => (payload?.$case === "statusUpdate" ? payload.value.taskId : undefined),
    listening,
  );
}

const oldTransports = {
  JSONRPC: () => new old.JsonRpcTransportFactory(),
  "HTTP+JSON": () => new old.RestTransportFactory(),
  GRPC: () => new OldGrpcTransportFactory(),
};

export async function quietV03(url: string, binding: BindingName, listening: () => void): Promise<Heard> {
  const client = await new old.ClientFactory({ transports: [oldTransports[binding]()] }).createFromUrl(url);
  const message = {
    kind: "message",
    role: "user",
    messageId: crypto.randomUUID(),
    parts: [{ kind: "text", text: "quiet" }],
  } as const;
  return twoReaders(
    client.sendMessageStream({ message: { ...message, parts: [...message.parts] } }),
    (id) => client.resubscribeTask({ id }),
    oldGlance,
    (event) => (event.kind === "status-update" ? event.taskId : undefined),
    listening,
  );
}

/** Reads the stream of a message until its task works, then also a subscription, and both to the end. */
async function twoReaders<E>(
  stream: AsyncGenerator<E, void>,
  subscribe: (id: string) => AsyncGenerator<E, void>,
  glimpse: (event: E) => string,
  workingTask: (event: E) => string | undefined,
  listening: () => void,
): Promise<Heard> {
  let id: string | undefined;
  while (id === undefined) {
    const { value, done } = await stream.next();
    if (done === true) throw new Error("It ended before it worked");
    id = workingTask(value);
  }
  const reader = subscribe(id);
  const begun = await reader.next();
  const first = begun.done === true ? "nothing" : glimpse(begun.value);
  listening();
  const [rest, other] = await Promise.all([all(reader, glimpse), all(stream, glimpse)]);
  return { first, rest, other };
}

async function all<E>(stream: AsyncIterable<E>, glimpse: (event: E) => string): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of stream) seen.push(glimpse(event));
  return seen;
}

const request = (): SendMessageRequest => ({
  tenant: "",
  message: {
    messageId: crypto.randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ metadata: {}, filename: "", mediaType: "", content: { $case: "text", value: "quiet" } }],
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: {},
});

function stateOf(state: TaskState | undefined): string {
  return TaskState[state ?? TaskState.UNRECOGNIZED].replace("TASK_STATE_", "");
}

function glance({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case "task":
      return `task ${stateOf(payload.value.status?.state)}`;
    case "statusUpdate":
      return `status ${stateOf(payload.value.status?.state)}`;
    case "artifactUpdate": {
      const texts = payload.value.artifact?.parts.map(({ content }) =>
        content?.$case === "text" ? content.value : "",
      );
      return `artifact ${texts?.join("")}`;
    }
    case "message":
    case undefined:
      return "message";
  }
}

type OldEvent = ReturnType<old.Client["sendMessageStream"]> extends AsyncGenerator<infer E> ? E : never;

function oldGlance(event: OldEvent): string {
  const shout = (state: string): string => state.toUpperCase().replace("-", "_");
  switch (event.kind) {
    case "task":
      return `task ${shout(event.status.state)}`;
    case "status-update":
      return `status ${shout(event.status.state)}${event.final ? ", final" : ""}`;
    case "artifact-update":
      return `artifact ${event.artifact.parts.map((part) => (part.kind === "text" ? part.text : "")).join("")}`;
    case "message":
      return "message";
  }
}
