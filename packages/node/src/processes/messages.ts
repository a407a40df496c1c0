import { A2AError } from "@parley/a2a/internal/model/index";
import type { Handler, ServedAgent } from "@parley/server/internal/handler";
import type { Principal } from "@parley/a2a/internal/protocol/index";

/* Messages between the parent process and the serving processes, over the channel of `node:child_process`. */

/** The environment variable of a serving process, with its `Place` as JSON. */
export const placeVariable = "PARLEY_PROCESS";

/** The place of a process among the serving processes. */
export interface Place {
  /** The pid of the parent. Children of a serving process inherit the variable, too, but this pid shows them that it is not theirs. */
  readonly parent: number;
  /** Its number, from 1. */
  readonly number: number;
  /** Numbers of the ports, the main one first. */
  readonly ports: readonly number[];
  /** A random name that all serving processes of the parent share. */
  readonly group: string;
  /** The pids of the processes that ended last. */
  readonly ended: readonly number[];
  /** The pids of processes that were killed from outside. */
  readonly killed: readonly number[];
  /** 32 random bytes in base64 that all serving processes share: a key for data that does not outlive them. */
  readonly secret: string;
}

/** From the parent. A connection comes with its socket. */
export type Order =
  | { readonly parley: "connection"; readonly port: number }
  /** All processes are about to stop: readiness fails from now on, but everything is still served. */
  | { readonly parley: "drain" }
  | { readonly parley: "close"; readonly grace: number }
  /** The process gets no more connections. */
  | { readonly parley: "left" }
  /** Another process has ended: its leases are free. `isKilled`: it was killed from outside. */
  | { readonly parley: "gone"; readonly pid: number; readonly isKilled: boolean }
  | { readonly parley: "wakeup"; readonly text: string }
  | { readonly parley: "signal"; readonly call: number; readonly event: SignalEvent }
  | { readonly parley: "delete"; readonly call: number; readonly owner: Principal | string; readonly scrub: boolean }
  /** Asks for the next piece of an export. The first request starts the export. */
  | { readonly parley: "export"; readonly call: number; readonly id: number; readonly owner: Principal | string }
  /** The reader stopped early. */
  | { readonly parley: "exported"; readonly id: number };

/** The arguments of `Server.signal`. */
export type SignalEvent = Parameters<Handler["signal"]>;

/** The result of `Server.deleteOwner`. */
export type Erasure = Awaited<ReturnType<Handler["deleteOwner"]>>;

/** From a serving process. */
export type Report =
  | { readonly parley: "ready"; readonly agents: readonly ServedAgent[] }
  /** `serve()` has rejected. */
  | { readonly parley: "failed"; readonly message: string }
  /** The process has received the connection. */
  | { readonly parley: "taken" }
  /** The process takes no more connections. */
  | { readonly parley: "leaving" }
  | { readonly parley: "closed" }
  | { readonly parley: "wakeup"; readonly text: string }
  /** The call has ended. */
  | ({ readonly parley: "answered"; readonly call: number; readonly error?: SentError } & Answer);

/** The result of a call. */
export interface Answer {
  /** Counts of the owner's deleted data. */
  readonly erased?: Erasure;
  /** The next piece of an export. Absent after the last one. */
  readonly piece?: string;
}

/** An error that one process reports to another. */
export interface SentError {
  readonly code: A2AError["code"];
  readonly message: string;
}

/** The error in the form that is sent. Omits the details of errors other than `A2AError`. */
export function sentError(thrown: unknown): SentError {
  const error = thrown instanceof A2AError ? thrown : new A2AError("InternalError");
  return { code: error.code, message: error.message };
}

export function receivedError({ code, message }: SentError): A2AError {
  return new A2AError(code, message);
}

/** Whether a message is of this protocol, not of the user's program. */
export function isOurs<Message extends Order | Report>(message: unknown): message is Message {
  return typeof message === "object" && message !== null && "parley" in message;
}
