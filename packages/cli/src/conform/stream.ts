import type { Json } from "./format.ts";

export interface StreamHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The wire broke a rule that no test has to name: what came is no event stream, or not what its binding sends. */
export class BrokenWire extends Error {}

/** An open event stream (HTML Living Standard §9.2): its `data`, parsed as they come. */
export class LiveStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** One value an event, as it stands on the wire. */
  readonly raw: Json[] = [];
  readonly #stop: () => void;
  readonly #waiting = new Set<() => void>();
  #ended = false;
  #broken: BrokenWire | undefined;

  constructor(head: StreamHead, body: AsyncIterable<Uint8Array>, stop: () => void) {
    this.status = head.status;
    this.headers = head.headers;
    this.#stop = stop;
    void this.#read(body);
  }

  /** Whether the server has closed it, or `close` has. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Resolves once there are so many events, or the stream has ended; true where the first came true in time. */
  async until(count: number, timeout: number): Promise<boolean> {
    const deadline = Date.now() + timeout;
    while (this.raw.length < count && !this.#ended && Date.now() < deadline) await this.#change(deadline - Date.now());
    if (this.#broken !== undefined) throw this.#broken;
    return this.raw.length >= count;
  }

  /** Waits for the end; false where it does not come in time. */
  async end(timeout: number): Promise<boolean> {
    await this.until(Infinity, timeout);
    return this.#ended;
  }

  close(): void {
    this.#finish();
    this.#stop();
  }

  #change(timeout: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeout);
      this.#waiting.add(wake);
    });
  }

  #finish(broken?: BrokenWire): void {
    if (this.#ended) return;
    this.#broken = broken;
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let line = "";
    let data: string[] = [];
    const take = (text: string): void => {
      if (text === "") {
        if (data.length > 0) this.#event(data.join("\n"));
        data = [];
        return;
      }
      const [, field, value = ""] = /^([^:]*)(?:: ?([^]*))?$/.exec(text) ?? [];
      if (field === "data") data.push(value);
      else if (field !== "" && !["event", "id", "retry"].includes(field ?? "")) {
        throw new BrokenWire(
          `the stream has a line that is no field of an event: ${JSON.stringify(text.slice(0, 80))}`,
        );
      }
    };
    try {
      for await (const bytes of body) {
        if (this.#ended) return;
        const lines = (line + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
        line = lines.pop() ?? "";
        for (const one of lines) take(one);
      }
      // What no blank line ends is no event: the standard throws it away, and so do clients.
      this.#finish(
        data.length > 0 || line.trim() !== "" ? new BrokenWire("the stream ends inside an event") : undefined,
      );
    } catch (error) {
      if (error instanceof BrokenWire) this.#finish(error);
      else this.#finish(new BrokenWire(`the stream broke: ${error instanceof Error ? error.message : String(error)}`));
      this.#stop();
    }
  }

  #event(data: string): void {
    try {
      this.raw.push(JSON.parse(data) as Json);
    } catch {
      throw new BrokenWire(`event ${this.raw.length} of the stream is no JSON: ${JSON.stringify(data.slice(0, 80))}`);
    }
    this.#wake();
  }
}
