import { deferred } from "../base/index.ts";
import { A2AError, isTerminal, type Task } from "../model/index.ts";
import type { WebhookClient, WebhookReceiver, WebhookReading } from "./port.ts";

/** Waits for a task by a webhook of its own, which is removed at the end. */
export async function waitByWebhook(
  receiver: Pick<WebhookReceiver, "subscribe">,
  client: WebhookClient,
  taskId: string,
  until: (task: Task) => boolean,
  signal: AbortSignal | undefined,
  { received = (task) => task }: WebhookReading,
): Promise<Task> {
  const options = { signal };
  const { promise, resolve, reject } = deferred<Task>();
  // It may be settled before anybody waits for it.
  promise.catch(() => undefined);
  const look = (task: Task): void => {
    const { state } = task.status;
    if (until(task)) resolve(task);
    else if (isTerminal(state)) {
      reject(new A2AError("UnsupportedOperation", `Task ${taskId} ended in ${state}`));
    }
  };
  const subscription = receiver.subscribe(async ({ task, statusUpdate }, delivery) => {
    if (delivery.taskId !== taskId) return;
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
      // What happened before the webhook was there.
      look(await client.getTask(taskId, options));
    }
    return await promise;
  } finally {
    signal?.removeEventListener("abort", abort);
    subscription.close();
    // Where that fails, the next delivery gets a 410, which removes it too.
    if (id !== undefined) client.deleteTaskPushNotificationConfig({ taskId, id }).catch(() => undefined);
  }
}
