import type { SendMessageRequest, StreamResponse } from "../model/index.ts";
import type { MessageSender, WebhookReceiver } from "./port.ts";

/**
 * A client that adds a webhook to each message whose task has none yet. The task of a message is known from its answer: a message
 * that continues it gets no second webhook, which would report everything twice.
 */
export function withUpdates<Stream>(
  receiver: Pick<WebhookReceiver, "subscribe">,
  client: MessageSender<Stream>,
  listener: (event: StreamResponse) => void | Promise<void>,
  note: (event: StreamResponse) => void,
): MessageSender<Stream> & { close(this: void): void } {
  /** The task of the last message, and the last one that got a webhook. */
  let current: string | undefined;
  let reported: string | undefined;
  let closed = false;
  let sending: Promise<unknown> = Promise.resolve();

  const subscription = receiver.subscribe((event, { taskId }) => {
    // After the answer of the message, which may be older. A late event of an earlier task says nothing about this one.
    void sending.then(() => {
      if (taskId === current) note(event);
    });
    return listener(event);
  }, client);

  const place = (request: SendMessageRequest): SendMessageRequest => {
    const { message, configuration } = request;
    const known = message.taskId !== undefined && message.taskId === reported;
    if (closed || known || configuration?.taskPushNotificationConfig !== undefined) return request;
    return { ...request, configuration: { ...configuration, taskPushNotificationConfig: subscription.config() } };
  };
  const learn = (sent: SendMessageRequest, placed: boolean, taskId: string | undefined): void => {
    current = taskId ?? current;
    if (placed) reported = taskId ?? sent.message.taskId;
  };

  return {
    ids: client.ids,
    getTask: (id) => client.getTask(id),
    sendMessage(request, options) {
      const sent = place(request);
      const answer = client.sendMessage(sent, options).then((response) => {
        learn(sent, sent !== request, response.task?.id);
        return response;
      });
      sending = answer.catch(() => undefined);
      return answer;
    },
    sendStreamingMessage(request, options, observe) {
      const sent = place(request);
      return client.sendStreamingMessage(sent, options, (event) => {
        learn(sent, sent !== request, event.task?.id ?? event.statusUpdate?.taskId);
        observe?.(event);
      });
    },
    close() {
      closed = true;
      subscription.close();
    },
  };
}
