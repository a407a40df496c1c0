import type { SendMessageRequest, StreamResponse } from "@parley/a2a/internal/model/index";
import { type Oid4vpRequest, readOid4vpRequest, type WalletSchemesOptions } from "./request.ts";

/* Clients that present credentials: a wallet gets what the agent asks for, and talks to the verifier itself. */

/** What a wallet is asked for. */
export interface PresentationRequest {
  /** The request. A stranger wrote it. */
  readonly authorizationRequest: Oid4vpRequest;
  /** What it is for, as the agent says it. */
  readonly reason: string;
  /** The task that waits for it. */
  readonly taskId: string;
  /** Aborted when the task goes on, or is over. */
  readonly signal: AbortSignal;
}

/** Presents credentials: those of a person, by a link or a QR code (`walletUrl()`), or those of the client itself. */
export interface PresentationWallet {
  /**
   * Presents, or refuses to. What comes of it is between wallet, verifier and agent: nothing goes back over A2A. Where it rejects, the task is
   * canceled.
   */
  present(request: PresentationRequest): void | Promise<void>;
}

/** What is needed of a client. A `Client` of `@parley/a2a` has it. */
export interface PresentingClient {
  /** Sends a message and follows its task. */
  sendStreamingMessage(
    request: SendMessageRequest,
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<StreamResponse>;
  /** Cancels a task. */
  cancelTask(taskId: string): Promise<unknown>;
}

/** Options of `presentWith()`. */
export interface PresentOptions extends WalletSchemesOptions {
  /** Ends the stream when it is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Sends a message, and gives each request for a presentation to a wallet, once. The events of the task pass through. The client has to
 * activate the extension: `connect(url, { extensions: [oid4vp] })`.
 *
 * @throws what the wallet rejects with; TypeError for a scheme that can be none of a wallet.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [oid4vp] });
 * const wallet: PresentationWallet = { present: ({ authorizationRequest }) => console.log(walletUrl(authorizationRequest)) };
 * for await (const event of presentWith(client, wallet, "Enrol me")) {
 *   if (event.statusUpdate) console.log(event.statusUpdate.status.state);
 * }
 * ```
 */
export async function* presentWith(
  client: PresentingClient,
  wallet: PresentationWallet,
  message: string | SendMessageRequest,
  options: PresentOptions = {},
): AsyncGenerator<StreamResponse, void, void> {
  const request: SendMessageRequest =
    typeof message === "string"
      ? { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: message }] } }
      : message;
  const { signal, ...schemes } = options;
  const events = client.sendStreamingMessage(request, signal === undefined ? {} : { signal })[Symbol.asyncIterator]();
  const asked = new Asked(wallet, schemes);
  try {
    for (;;) {
      const step = await Promise.race([events.next(), asked.refused]);
      if (step.done === true) return;
      asked.see(step.value);
      yield step.value;
    }
  } catch (error) {
    const { refusedTask } = asked;
    // The agent would wait until its request expires.
    if (refusedTask !== undefined) await client.cancelTask(refusedTask).catch(() => {});
    throw error;
  } finally {
    asked.end();
    // A stream that waits for its next event ends with it.
    void events.return?.()?.catch(() => {});
  }
}

/** The requests of a task, and what became of them. */
class Asked {
  /** Rejects where the wallet does. */
  readonly refused: Promise<never>;
  refusedTask: string | undefined;
  readonly #wallet: PresentationWallet;
  readonly #schemes: WalletSchemesOptions;
  #refuse!: (error: unknown) => void;
  #taskId = "";
  /** The request that the task waits for, as JSON. */
  #open: string | undefined;
  #abort: AbortController | undefined;

  constructor(wallet: PresentationWallet, schemes: WalletSchemesOptions) {
    this.#wallet = wallet;
    this.#schemes = schemes;
    this.refused = new Promise((_, reject) => (this.#refuse = reject));
    // Nobody may wait for it when it rejects.
    this.refused.catch(() => {});
  }

  see({ task, statusUpdate }: StreamResponse): void {
    this.#taskId = task?.id ?? statusUpdate?.taskId ?? this.#taskId;
    const status = (task ?? statusUpdate)?.status;
    if (status === undefined) return;
    const waits = status.state === "TASK_STATE_AUTH_REQUIRED";
    const authorizationRequest = waits ? readOid4vpRequest(status.message, this.#schemes) : undefined;
    const open = authorizationRequest && JSON.stringify(authorizationRequest);
    if (open === this.#open) return;
    this.end();
    this.#open = open;
    if (authorizationRequest === undefined) return;
    const reason = status.message?.parts.find(({ text }) => text !== undefined)?.text ?? "";
    void this.#present({ authorizationRequest, reason, taskId: this.#taskId });
  }

  /** The wallet need not go on. */
  end(): void {
    this.#abort?.abort();
    this.#abort = undefined;
  }

  async #present(request: Omit<PresentationRequest, "signal">): Promise<void> {
    const { signal } = (this.#abort = new AbortController());
    try {
      await this.#wallet.present({ ...request, signal });
    } catch (error) {
      // The task may have gone on by itself meanwhile.
      if (signal.aborted) return;
      this.refusedTask = request.taskId;
      this.#refuse(error);
    }
  }
}
