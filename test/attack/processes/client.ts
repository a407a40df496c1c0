import { A2AError, type ConnectOptions, type EventStream } from "@parley/a2a";
import { connect } from "@parley/node";
import { answer } from "./answer.ts";

/* The process of a client under attack. It calls the given URL. */

export interface CallSettings extends Pick<ConnectOptions, "binding" | "timeout" | "idleTimeout" | "headers"> {}

/** The result of a call: a text, or a protocol error. */
export type CallOutcome =
  | { readonly result: string }
  | { readonly error: string; readonly message: string }
  /** Any other error. */
  | { readonly thrown: string };

const once = { retry: false, reconnect: false } as const;
let kept: EventStream | undefined;

async function outcomeOf(run: () => Promise<string>): Promise<CallOutcome> {
  try {
    return { result: await run() };
  } catch (error) {
    if (error instanceof A2AError) return { error: error.code, message: error.message.slice(0, 500) };
    return { thrown: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

answer(
  {
    /** Resolves to the answer to a message. */
    send: (url: string, settings: CallSettings = {}) =>
      outcomeOf(async () => {
        const client = await connect(url, { ...once, ...settings });
        const reply = await client.sendMessage("hello");
        return "message" in reply ? (reply.message.parts[0]?.text ?? "") : reply.task.status.state;
      }),
    /** Resolves to the number of events of a stream. */
    stream: (url: string, settings: CallSettings = {}) =>
      outcomeOf(async () => {
        const client = await connect(url, { ...once, ...settings });
        const events = [];
        for await (const event of client.sendStreamingMessage("hello")) events.push(event);
        return String(events.length);
      }),
    /** Reads one event, and then stops reading until `leave` is called. */
    dawdle: (url: string, settings: CallSettings = {}) =>
      outcomeOf(async () => {
        const client = await connect(url, { ...once, ...settings });
        kept = client.sendStreamingMessage("hello");
        const { done } = await kept[Symbol.asyncIterator]().next();
        return done === true ? "nothing" : "an event";
      }),
    leave: async () => {
      await kept?.[Symbol.asyncIterator]().return?.();
      kept = undefined;
    },
  },
  undefined,
);
