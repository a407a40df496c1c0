import {
  A2AError,
  hasCode,
  isTerminal,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "../model/index.ts";
import type { MessageSender, WebhookReceiver, WebhookClient, WebhookReading } from "./port.ts";
import { deferred, type Clock, type Logger } from "../base/index.ts";

/**
 * Wraps a client: adds a webhook to each message whose task has none yet. The answer to a message shows its task. A later
 * message to that task gets no second webhook, which would report everything twice.
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
    // Note the event after the answer to the message, because the answer may be older. Ignore a late event of an earlier task.
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

/** Minimum and maximum time without a webhook after which the task is polled, in milliseconds. */
const minSilence = 10_000;
const maxSilence = 60_000;

/**
 * Waits for a task with a dedicated webhook, which is removed at the end. Polls until a webhook arrives, because the agent may be
 * unable to reach the receiver, or a restart of either may have lost the webhook.
 */
export async function waitByWebhook(
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  receiver: Pick<WebhookReceiver, "subscribe">,
  client: WebhookClient,
  taskId: string,
  until: (task: Task) => boolean,
  signal: AbortSignal | undefined,
  { received = (task) => task }: WebhookReading,
): Promise<Task> {
  const options = { signal };
  const { promise, resolve, reject } = deferred<Task>();
  // It may reject before a handler is attached.
  promise.catch(() => undefined);
  const look = (task: Task): void => {
    const { state } = task.status;
    if (until(task)) resolve(task);
    else if (isTerminal(state)) {
      reject(new A2AError("UnsupportedOperation", `Task ${taskId} ended in ${state}`));
    }
  };
  let isOver = false;
  let stopPolling = (): void => {};
  const pollAfter = (silence: number): void => {
    stopPolling();
    if (!isOver) stopPolling = clock.after(silence, () => void poll(silence));
  };
  const poll = async (silence: number): Promise<void> => {
    pollAfter(Math.min(maxSilence, silence * 2));
    try {
      const task = await client.getTask(taskId, options);
      logger.debug("No webhook received; polled the task", { taskId, silence, state: task.status.state });
      look(task);
    } catch (thrown) {
      // A webhook, or the next poll, may still bring the task.
      if (!isOver && thrown instanceof A2AError && !hasCode(thrown, "TaskNotFound"))
        logger.warn("Failed to poll a task that waits for a webhook; retrying", { taskId, cause: thrown });
      else reject(thrown);
    }
  };
  const subscription = receiver.subscribe(async ({ task, statusUpdate }, delivery) => {
    if (delivery.taskId !== taskId) return;
    pollAfter(minSilence);
    if (task !== undefined) {
      try {
        look(delivery.fetched === undefined ? received(task, delivery.extensions) : task);
      } catch (thrown) {
        // It would be thrown for each repetition of the delivery.
        reject(thrown);
      }
    }
    // A status has no artifacts, and `until` gets the whole task.
    else if (statusUpdate !== undefined) look(await client.getTask(taskId, options));
  }, client);
  let id: string | undefined;
  const abort = (): void => {
    const reason: unknown = signal?.reason;
    reject(reason instanceof A2AError ? reason : new A2AError("Aborted", undefined, { cause: reason }));
  };
  try {
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    else {
      ({ id } = await client.createTaskPushNotificationConfig(subscription.config({ taskId }), options));
      // Changes before the webhook was registered.
      look(await client.getTask(taskId, options));
      pollAfter(minSilence);
    }
    return await promise;
  } finally {
    isOver = true;
    stopPolling();
    signal?.removeEventListener("abort", abort);
    subscription.close();
    // If that fails, the next delivery gets a 410, which removes it too.
    if (id !== undefined) client.deleteTaskPushNotificationConfig({ taskId, id }).catch(() => undefined);
  }
}
