import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { StreamResponse, TaskState } from "@parley/a2a/model";
import { nodeListener } from "@parley/node";
import {
  webhookReceiver,
  type WebhookDelivery,
  type WebhookReceiver,
  type WebhookReceiverOptions,
} from "@parley/a2a/webhooks";

/** A request as received over the wire. */
export interface WireRequest {
  readonly contentType: string | undefined;
  readonly token: string | undefined;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** A listening receiver, the requests that it got, and the events that it passed on. */
export interface Listening {
  readonly receiver: WebhookReceiver;
  readonly wire: WireRequest[];
  readonly events: StreamResponse[];
  readonly deliveries: WebhookDelivery[];
  /** The reported states. */
  states(): readonly TaskState[];
  /** The status of each response. */
  readonly answers: number[];
  close(): Promise<void>;
}

/** Listens on a port that the system chooses. */
export async function listenForWebhooks(
  options: Pick<WebhookReceiverOptions, "accept"> & Partial<WebhookReceiverOptions>,
): Promise<Listening> {
  const [wire, events, deliveries, answers] = [
    [] as WireRequest[],
    [] as StreamResponse[],
    [] as WebhookDelivery[],
    [] as number[],
  ];
  const host: { answer?: ReturnType<typeof nodeListener> } = {};
  const server = createServer((request, response) => {
    response.on("finish", () => answers.push(response.statusCode));
    host.answer?.(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver = webhookReceiver({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    onEvent(event, delivery) {
      events.push(event);
      deliveries.push(delivery);
    },
    ...options,
  });
  host.answer = nodeListener((request) => {
    const read = request.text.bind(request);
    const text: typeof read = async (...bounds) => {
      const body = await read(...bounds);
      const token = request.header("x-a2a-notification-token") ?? request.header("a2a-notification-token");
      wire.push({
        contentType: request.header("content-type"),
        token,
        authorization: request.header("authorization"),
        body,
      });
      return body;
    };
    return receiver.handle(Object.assign(request, { text }));
  });
  return {
    receiver,
    wire,
    events,
    deliveries,
    answers,
    states: () =>
      events.flatMap(({ task, statusUpdate }) => {
        const state = (task ?? statusUpdate)?.status.state;
        return state === undefined ? [] : [state];
      }),
    async close() {
      await receiver.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
