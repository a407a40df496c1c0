import type { SendMessageRequest, StreamResponse } from "@parley/a2a/internal/model/index";
import { requestOf } from "../shared/values.ts";
import { type Oid4vpRequest, readOid4vpRequest, type WalletSchemesOptions } from "./request.ts";

/** A request to a wallet. */
export interface PresentationRequest {
  /** The untrusted request. */
  readonly authorizationRequest: Oid4vpRequest;
  /** The agent's reason. */
  readonly reason: string;
  /** The waiting task. */
  readonly taskId: string;
  /** Aborted when the task continues or ends. */
  readonly signal: AbortSignal;
}

/** Presents credentials of a person, with a link or QR code (`walletUrl()`), or of the client itself. */
export interface PresentationWallet {
  /**
   * Presents the credentials. Rejecting cancels the task. The verifier tells the agent the outcome; the client sends
   * nothing over A2A.
   */
  present(request: PresentationRequest): void | Promise<void>;
}

/** The methods of a client that `presentWith()` needs. A `Client` of `@parley/a2a` has them. */
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
  /** Ends the stream when aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Sends a message and yields its events. Passes each request for a presentation to the wallet once. The client must
 * activate the extension: `connect(url, { extensions: [oid4vp] })`.
 *
 * @throws the error of the wallet; TypeError for a scheme that no wallet can have.
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
  const { signal, ...schemes } = options;
  const events = client
    .sendStreamingMessage(requestOf(message), signal === undefined ? {} : { signal })
    [Symbol.asyncIterator]();
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
    // Otherwise the agent waits until the request expires.
    if (refusedTask !== undefined) await client.cancelTask(refusedTask).catch(() => {});
    throw error;
  } finally {
    asked.end();
    // Also ends a stream that waits for its next event.
    void events.return?.()?.catch(() => {});
  }
}

/** The requests of a task. */
class Asked {
  /** Rejects when the wallet does. */
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
    // Avoids an unhandled rejection if nothing awaits it.
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

  /** Tells the wallet to stop. */
  end(): void {
    this.#abort?.abort();
    this.#abort = undefined;
  }

  async #present(request: Omit<PresentationRequest, "signal">): Promise<void> {
    const { signal } = (this.#abort = new AbortController());
    try {
      await this.#wallet.present({ ...request, signal });
    } catch (error) {
      // The task may have continued meanwhile.
      if (signal.aborted) return;
      this.refusedTask = request.taskId;
      this.#refuse(error);
    }
  }
}
