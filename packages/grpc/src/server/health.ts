import type { UniversalResponse } from "@parley/a2a/protocol";
import { health } from "../descriptors.ts";
import { decode } from "../protobuf/decode.ts";
import { readSchema, type MethodType } from "../protobuf/schema.ts";
import type { MessageType } from "../protobuf/types.ts";
import type { CallSink } from "./call-sink.ts";
import type { Call } from "./call.ts";
import { ok, type FrameWriter, type Method } from "./method.ts";
import { StatusError } from "./status-error.ts";

/** grpc.health.v1: whether the services here are served, as load balancers ask it. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #frames: FrameWriter;
  #stopping = false;
  readonly #watchers = new Set<() => void>();

  /** The empty name, of the server as a whole, is always among those that can be asked for. */
  constructor(services: readonly string[], frames: FrameWriter) {
    this.#services = new Set(["", ...services]);
    this.#frames = frames;
  }

  /** Says from now on that nothing is served, and ends who watches. */
  stop(): void {
    this.#stopping = true;
    for (const wake of this.#watchers) wake();
  }

  /** By path. */
  methods(): ReadonlyMap<string, Method> {
    const [service] = readSchema([health]).services;
    return new Map(
      (service?.methods ?? []).map((method) => [
        `/${service?.name}/${method.name}`,
        (call: Call) => (method.serverStream ? this.#watch(call, method) : this.#check(call, method)),
      ]),
    );
  }

  async #check(call: Call, { input, output }: MethodType): Promise<UniversalResponse> {
    const { service = "" } = decode(input, await call.only()) as { service?: string };
    if (!this.#services.has(service)) throw new StatusError("NOT_FOUND", "No service of that name is served here");
    return call.reply(this.#frames.write(output, [{ status: this.#status }]), ok);
  }

  async #watch(call: Call, { input, output }: MethodType): Promise<UniversalResponse> {
    const { service = "" } = decode(input, await call.only()) as { service?: string };
    return call.stream((sink) => this.#tell(sink, service, output), ok);
  }

  async #tell(sink: CallSink, service: string, output: MessageType): Promise<void> {
    const known = this.#services.has(service);
    await sink.write(this.#frames.write(output, [{ status: known ? this.#status : "SERVICE_UNKNOWN" }]));
    if (!this.#stopping) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#watchers.delete(wake);
          resolve();
        };
        this.#watchers.add(wake);
        sink.onClose(wake);
      });
      if (known) await sink.write(this.#frames.write(output, [{ status: this.#status }]));
    }
    throw new StatusError("UNAVAILABLE", "The server is stopping");
  }

  get #status(): string {
    return this.#stopping ? "NOT_SERVING" : "SERVING";
  }
}
