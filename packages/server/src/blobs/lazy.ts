import {
  ByteBudget,
  type AgentService,
  type IncomingFiles,
  type Payload,
  type Principal,
} from "@parley/a2a/internal/protocol/index";
import type { Blobs } from "./blobs.ts";
import type { BlobDeps, BlobSettings } from "./port.ts";
import type { ReceivingPlace } from "./receive.ts";
import type { BlobOwner } from "./ref.ts";

/** Large files, whose code is loaded with the first one. */
export interface LazyBlobs {
  readonly inlineBytes: number;
  /** Milliseconds between two searches for unused files. */
  readonly interval: number;
  /** Begins to receive a message with large files. */
  receive(place: ReceivingPlace): Promise<IncomingFiles>;
  load(): Promise<Blobs>;
  /** A payload for the owner of a task, with links to its files. */
  linked<T>(payload: Payload<T>, owner: BlobOwner): Promise<Payload<T>>;
  /** Inlines files into texts for an owner, whichever agent the files belong to. */
  inlined(texts: AsyncIterable<string>, owner: string): AsyncGenerator<string, void, void>;
  /** Wraps a service: files in its answers become links, or bytes if the client requests them. */
  around(service: AgentService, agent: string, ownerOf: (principal: Principal) => string): AgentService;
}

export function lazyBlobs(settings: BlobSettings, deps: BlobDeps): LazyBlobs {
  let loading: Promise<Blobs> | undefined;
  const load = (): Promise<Blobs> => (loading ??= import("./blobs.ts").then(({ Blobs }) => new Blobs(settings, deps)));
  let budget: ByteBudget | undefined;
  return {
    inlineBytes: settings.inlineBytes,
    interval: settings.interval,
    async receive(place) {
      const { Receiving } = await import("./receive.ts");
      budget ??= new ByteBudget(settings.unfinishedBytes, deps.clock, "The server is busy with other large messages");
      return new Receiving(settings, budget, place, deps.clock).begin();
    },
    load,
    linked: async (payload, owner) => (await import("./deliver.ts")).linked(payload, await load(), owner),
    async *inlined(texts, owner) {
      yield* (await import("./deliver.ts")).withBlobs(texts, settings.store, owner);
    },
    around(service, agent, ownerOf) {
      const wrapped = import("./deliver.ts").then(async ({ withFiles }) =>
        withFiles(service, await load(), (principal) => ({ agent, owner: ownerOf(principal) })),
      );
      // Each call rejects with the error.
      wrapped.catch(() => {});
      return {
        call: async (...call) => (await wrapped).call(...call),
        stream: async (...call) => (await wrapped).stream(...call),
      };
    },
  };
}
