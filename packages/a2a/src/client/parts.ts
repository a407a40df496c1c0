import type { Clock, Ids } from "../base/index.ts";
import type { AgentCard, AgentInterface, Task } from "../model/index.ts";
import type { AgentService, AnyExtension, FileFetch } from "../protocol/index.ts";
import type { download } from "./download.ts";
import type { ExtOfClient } from "./extension-client.ts";
import type { readText } from "./text.ts";

/** What a client is made of. `connect()` puts it together. */
export interface ClientParts {
  /** The card of the agent. */
  readonly card: AgentCard;
  /** Sends the calls. */
  readonly service: AgentService;
  /** Returns the interface that is in use. */
  readonly chosen: () => AgentInterface;
  /** Measures timeouts. */
  readonly clock: Clock;
  /** Makes the ids of messages. */
  readonly ids: Ids;
  /** Longest call in milliseconds. `false`: no limit. */
  readonly timeout: number | false;
  /** URIs of extensions that every call asks for. */
  readonly extensions: readonly string[];
  /** `download()`. Absent: the client has no method for it, and is small. */
  readonly download?: typeof download | undefined;
  /** `Client.fileFetch()`. Absent: the client reads no links by itself, and is small. */
  readonly fileFetch?: ((other?: FileFetch) => FileFetch) | undefined;
  /** `readText()`, for `EventStream.text()`. Absent: streams have no such method, and are small. */
  readonly readText?: typeof readText | undefined;
  /** `client.ext()`. Absent: the client has no method for it, and is small. */
  readonly ext?: ExtOfClient<AnyExtension> | undefined;
  /** Gives a task that came in a webhook its `ext`. Absent: the client has no extensions that are values. */
  readonly received?: ((task: Task, extensions: readonly string[] | undefined) => Task) | undefined;
}
