import { systemClock, type Clock } from "@parley/a2a/internal/base/index";
import { changedBy, WakeupBatch, type Wakeup, type WakeupListener } from "@parley/server/internal/store/wakeup";
import type { Store } from "@parley/server/internal/store/index";

/** Carries texts from one process of a machine to all others. */
export interface WakeupChannel {
  /** Whether texts arrive. */
  readonly isOpen: boolean;
  /** Sends a text to every other process. Resolves when it is sent. Until then, further texts wait, within a limit. */
  send(text: string): Promise<void>;
  /** Calls `listener` with the texts of other processes. */
  listen(listener: (text: string) => void): void;
}

/** Maximum bytes of a text, so that a pipe takes it in one write. */
const messageBytes = 32_768;
/** The text that means: any task may have changed. It names no sender. */
export const anyText: string = JSON.stringify(["", null]);
/** Minimum time between two texts of a process, in milliseconds. Short, because no disk and no network is involved. */
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
    // The channel fails only if the parent has ended, and then this process ends, too.
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

/** A store whose appends wake the other processes, and whose watchers are woken by theirs. */
export function wakingStore(store: Store, wakeup: Wakeup): Store {
  // The store has its own wake-ups, which also reach other machines.
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
  // A proxy, because a store may be of any class, with methods that the interface does not have.
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
