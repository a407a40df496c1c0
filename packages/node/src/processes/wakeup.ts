import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { changedBy, WakeupBatch, type Wakeup, type WakeupListener } from "@parley/server/internal/store/wakeup";
import type { Store } from "@parley/server/internal/store/index";

/** Carries texts from one process of a machine to all others. */
export interface WakeupChannel {
  /** Whether texts arrive. */
  readonly isOpen: boolean;
  /** Sends a text to every other process. Resolves when it is on its way. Until then others wait, within a limit. */
  send(text: string): Promise<void>;
  /** Calls `listener` with what the others send. */
  listen(listener: (text: string) => void): void;
}

/** Bytes of a text. A pipe takes it at once. */
const messageBytes = 32_768;
/** Says that any task may have changed, without naming the sender. */
export const anyText: string = JSON.stringify(["", null]);
/** The least time between two texts of a process, in milliseconds: nothing waits for a disk or a network. */
const interval = 2;

/** Wake-ups between processes of one machine. */
export function channelWakeup(channel: WakeupChannel, clock: Clock = systemClock): Wakeup {
  const listeners = new Set<{ readonly tell: WakeupListener }>();
  let isClosed = false;
  const batch = new WakeupBatch({
    clock,
    interval,
    messageBytes,
    send: async (texts) => void (await Promise.all(texts.map((text) => channel.send(text)))),
    // The channel ends with the process that started this one.
    onError: () => {},
  });
  channel.listen((text) => {
    const received = isClosed ? undefined : batch.read(text);
    if (received === undefined || received.isOwn) return;
    for (const taskId of received.taskIds) for (const { tell } of listeners) tell(taskId);
  });
  return {
    get isConnected() {
      return !isClosed && channel.isOpen;
    },
    publish: (taskIds) => batch.add(taskIds),
    subscribe(listener) {
      // The same function may be added twice.
      const entry = { tell: listener };
      listeners.add(entry);
      return () => void listeners.delete(entry);
    },
    async close() {
      await batch.close();
      isClosed = true;
    },
  };
}

/** The store, whose changes wake the other processes, as theirs wake its watchers. */
export function wakingStore(store: Store, wakeup: Wakeup): Store {
  // It has its own, which reach other machines, too.
  const others = "wakeup" in store && typeof store.wakeup === "object" ? store.wakeup : null;
  if (others !== null && "isConnected" in others && others.isConnected === true) return store;
  const own: Pick<Store, "append" | "watch"> = {
    async append(items) {
      const outcomes = await store.append(items);
      wakeup.publish(changedBy(items, outcomes));
      return outcomes;
    },
    watch(listener) {
      const ends = [store.watch?.(listener), wakeup.subscribe(listener)];
      return () => ends.forEach((end) => end?.());
    },
  };
  const bound = new Map<PropertyKey, unknown>(Object.entries(own));
  // A store may be of any class, and may have more methods than the port has today.
  return new Proxy(store, {
    get(target, name) {
      const known = bound.get(name);
      if (known !== undefined) return known;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const method: unknown = value.bind(target);
      bound.set(name, method);
      return method;
    },
  });
}
