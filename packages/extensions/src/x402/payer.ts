import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  type AgentCard,
  hasCode,
  type Message,
  type SendMessageRequest,
  type SendMessageResponse,
  stateKinds,
  type Task,
} from "@parley/a2a/internal/model/index";
import { memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { fitting, requestOf } from "../shared/values.ts";
import { isSame } from "./match.ts";
import { readPayment, submission } from "./read.ts";
import {
  maxCart,
  maxOption,
  maxPayment,
  payloadSchema,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentRequirements,
  x402Keys,
} from "./types.ts";

/* Clients that pay: within limits, and once per task. */

/** A limit for payments: a token, and a maximum per task. */
export interface PaymentLimit {
  /** The network, such as `base`. */
  readonly network: string;
  /** The token: the address of its contract. */
  readonly asset: string;
  /** Maximum for one task, in the smallest unit of the token. */
  readonly maxAmount: bigint | string;
  /** Allowed payees. Default: anyone. */
  readonly payTo?: readonly string[];
}

/** Options of `createPayer()`. */
export interface PayerOptions {
  /** Signs payments. */
  readonly wallet: Wallet;
  /** The payer pays nothing outside of these limits. The first limit with a matching option wins. */
  readonly limits: readonly PaymentLimit[];
  /** Allowed schemes. Default: `exact`, which pays exactly the option's amount. */
  readonly schemes?: readonly string[];
  /**
   * Longest validity of a payment, in seconds. The agent may take the money until then, so the payer rejects options
   * with a longer `maxTimeoutSeconds`. Default 3600.
   */
  readonly maxTimeoutSeconds?: number;
  /** Remembers payments. Default: `memoryLedger()`, for the lifetime of the payer. */
  readonly ledger?: PaymentLedger;
  /** Confirms each payment, for example by asking a person; `false` declines it. Default: only the limits decide. */
  readonly confirm?: (requirements: PaymentRequirements, task: Task) => boolean | Promise<boolean>;
  /** Milliseconds since the Unix epoch. Default: the system clock. */
  readonly now?: () => number;
}

/** The methods of a client that a payer needs. A `Client` of `@parley/a2a` has them. */
export interface PayingClient {
  /** The card of the agent. */
  readonly card: Pick<AgentCard, "name" | "supportedInterfaces">;
  /** Sends a message. */
  sendMessage(request: SendMessageRequest, options?: { readonly signal?: AbortSignal }): Promise<SendMessageResponse>;
  /** Waits for a task. */
  waitFor(task: string, options?: { readonly signal?: AbortSignal }): Promise<Task>;
}

/** Pays for tasks. */
export interface Payer {
  /**
   * Pays for a task that asks for a payment. Waits until the task ends or asks for something else. If a payment was
   * sent before, sends the same message again, which the agent deduplicates. Never signs a second payment for a task,
   * even if the first one failed.
   *
   * @throws PaymentRefused if it does not pay. For the kinds `limit` and `confirm`, it also tells the agent.
   */
  pay(client: PayingClient, task: Task, options?: { readonly signal?: AbortSignal }): Promise<Paid>;
}

/** A task after its payment. */
export interface Paid {
  /** The current task. */
  readonly task: Task;
  /** The chosen option. */
  readonly requirements: PaymentRequirements;
  /** The agent's claims about the payment. Only the network knows what was paid. */
  readonly receipts: readonly PaymentReceipt[];
}

/** Default of `maxTimeoutSeconds`. */
const usualTimeout = 3600;

/** A payment that was not made. */
export class PaymentRefused extends A2AError {
  /**
   * - `none`: the task does not ask for a payment, or asks in an unreadable form.
   * - `limit`: no option is within the limits and valid for at most `maxTimeoutSeconds`.
   * - `confirm`: `confirm` declined.
   * - `paid`: the task was already paid and asks again.
   * - `full`: the ledger has no space for another payment. The payer does not tell the agent, so a payer with another
   *   ledger can still pay.
   */
  readonly kind: "none" | "limit" | "confirm" | "paid" | "full";
  /** The task. */
  readonly task: Task;

  /** Thrown by payers. */
  constructor(kind: PaymentRefused["kind"], message: string, task: Task) {
    super("Aborted", message);
    this.kind = kind;
    this.task = task;
  }
}

/**
 * Creates a payer.
 *
 * @throws TypeError for an invalid amount or time.
 *
 * @example
 * ```ts
 * const payer = createPayer({ wallet: testWallet(), limits: [{ network: "base", asset: "0x8335", maxAmount: "1000000" }] });
 * ```
 */
export function createPayer(options: PayerOptions): Payer {
  const {
    wallet,
    ledger = memoryLedger(),
    confirm,
    now = () => Date.now(),
    maxTimeoutSeconds = usualTimeout,
  } = options;
  for (const [at, { maxAmount }] of options.limits.entries()) {
    if (typeof maxAmount === "bigint" ? maxAmount >= 0n : /^\d{1,78}$/.test(maxAmount)) continue;
    throw new TypeError(
      `limits[${at}].maxAmount must be a whole number, as a bigint or a string of digits; got ${String(maxAmount)}`,
    );
  }
  if (!Number.isInteger(maxTimeoutSeconds) || maxTimeoutSeconds < 1) {
    throw new TypeError(`maxTimeoutSeconds must be a whole number of seconds, 1 or more; got ${maxTimeoutSeconds}`);
  }
  const pay = async (client: PayingClient, task: Task, name: string, callOptions: CallOptions): Promise<Paid> => {
    const before = await ledger.find(name);
    const payment = readPayment(task);
    if (payment?.status !== "payment-required" || payment.required === undefined) throw refusal("none", task);
    if (before !== undefined) {
      // After a failure the agent asks again; it already has this message.
      if (payment.receipts.length > 0 || payment.error !== undefined) throw refusal("paid", task);
      return sent(client, before, task, callOptions);
    }
    const requirements = choose(payment.required, options);
    const isConfirmed = requirements !== undefined && (await confirm?.(requirements, task)) !== false;
    if (!isConfirmed) {
      await decline(client, task, callOptions);
      throw refusal(requirements === undefined ? "limit" : "confirm", task);
    }
    const { x402Version } = payment.required;
    if (ledger.hasRoom !== undefined && !(await ledger.hasRoom())) throw refusal("full", task);
    const payload = await wallet.sign({ requirements, x402Version, maxTimeoutSeconds, ...callOptions });
    if (fitting(payloadSchema, payload) === undefined) throw new TypeError("The wallet returned an invalid payment");
    const message = messageTo(task, submission(task, payload, new Date(now()).toISOString()));
    return sent(client, await kept(ledger, name, { message, requirements }, task), task, callOptions);
  };
  // Read once: the agent may change its extended card at any time, and must still count as the same agent.
  const agents = new WeakMap<PayingClient, string>();
  // Two concurrent calls for one task would both sign.
  const underWay = new Map<string, Promise<Paid>>();
  return {
    pay(client, task, callOptions = {}) {
      const agent = agents.get(client) ?? agentOf(client);
      agents.set(client, agent);
      const name = JSON.stringify([agent, task.id]);
      const known = underWay.get(name);
      if (known !== undefined) return known;
      const paying = pay(client, task, name, callOptions).finally(() => underWay.delete(name));
      underWay.set(name, paying);
      return paying;
    },
  };
}

type CallOptions = NonNullable<Parameters<Payer["pay"]>[2]>;

const sentences: Readonly<Record<PaymentRefused["kind"], string>> = {
  none: "The task does not ask for a payment in a readable form",
  limit: "No option is within the limits of the payer",
  confirm: "The payment was not confirmed",
  paid: "The task was paid before, and asks again",
  full: "The ledger of the payer is full",
};

function refusal(kind: PaymentRefused["kind"], task: Task): PaymentRefused {
  return new PaymentRefused(kind, sentences[kind], task);
}

function messageTo({ id, contextId }: Task, content: Pick<Message, "parts" | "metadata">): Message {
  const context = contextId !== undefined && { contextId };
  return { messageId: crypto.randomUUID(), role: "ROLE_USER", taskId: id, ...context, ...content };
}

/** Stores the payment before it is sent. */
async function kept(ledger: PaymentLedger, name: string, payment: SentPayment, task: Task): Promise<SentPayment> {
  try {
    return await ledger.keep(name, payment);
  } catch (error) {
    if (hasCode(error, "TooManyRequests")) throw refusal("full", task);
    throw error;
  }
}

/** A task is identified by agent and id, because another agent may use the same id. */
function agentOf({ card }: PayingClient): string {
  return card.supportedInterfaces[0]?.url ?? card.name;
}

/** The first option within a limit, in the order of the limits. */
function choose(
  { accepts }: PaymentRequiredResponse,
  { limits, schemes = ["exact"], maxTimeoutSeconds = usualTimeout }: PayerOptions,
): PaymentRequirements | undefined {
  for (const { network, asset, maxAmount, payTo } of limits) {
    for (const option of accepts) {
      const fits =
        schemes.includes(option.scheme) &&
        utf8Length(JSON.stringify(option)) <= maxOption &&
        (option.maxTimeoutSeconds ?? 0) <= maxTimeoutSeconds &&
        option.network === network &&
        isSame(option.asset, asset) &&
        BigInt(option.maxAmountRequired) <= BigInt(maxAmount) &&
        (payTo === undefined || payTo.some((payee) => isSame(payee, option.payTo)));
      if (fits) return option;
    }
  }
  return undefined;
}

async function sent(
  client: PayingClient,
  { message, requirements }: SentPayment,
  { id }: Task,
  options: CallOptions,
): Promise<Paid> {
  const { task: answered } = await client.sendMessage({ message }, options);
  // If the agent answers while the task is still active, wait for the task.
  const isOver = answered !== undefined && stateKinds[answered.status.state] !== "active";
  const task = isOver ? answered : await client.waitFor(id, options);
  return { task, requirements, receipts: readPayment(task)?.receipts ?? [] };
}

/** Declines the payment (v0.2 §5.4). */
async function decline(client: PayingClient, task: Task, options: CallOptions): Promise<void> {
  const parts = [{ text: "The client rejects the payment." }];
  const metadata = { [x402Keys.status]: "payment-rejected" };
  await client.sendMessage({ message: messageTo(task, { parts, metadata }) }, options);
}

/**
 * Sends a message, and pays if the agent asks for it. The client must activate the extension: `connect(url, {
 * extensions: [x402()] })`.
 *
 * @returns the direct reply, or the task after its payment.
 * @throws PaymentRefused as `Payer.pay` does.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [x402()] });
 * const payer = createPayer({ wallet: testWallet(), limits: [{ network: "base", asset: "0x8335", maxAmount: "1000000" }] });
 * const { task } = await payWith(client, payer, "Draw a sailboat");
 * ```
 */
export async function payWith(
  client: PayingClient,
  payer: Payer,
  message: string | SendMessageRequest,
  options: { readonly signal?: AbortSignal } = {},
): Promise<SendMessageResponse & { readonly payment?: Paid }> {
  const request = requestOf(message);
  const response = await client.sendMessage(request, options);
  if (response.task === undefined || readPayment(response.task)?.status !== "payment-required") return response;
  const payment = await payer.pay(client, response.task, options);
  return { task: payment.task, payment };
}

/** A request to sign. */
export interface SignRequest {
  /** The chosen option. */
  readonly requirements: PaymentRequirements;
  /** The version of x402 that the agent speaks. */
  readonly x402Version: number;
  /** Longest validity of the payment, in seconds. Absent: the wallet decides. */
  readonly maxTimeoutSeconds?: number;
  /** Aborted when the payment is no longer needed. */
  readonly signal?: AbortSignal;
}

/** Signs payments and keeps the keys: neither an agent nor a model may have them (v0.1 §9). */
export interface Wallet {
  /** Signs a payment of exactly the option's amount. Rejects to decline. */
  sign(request: SignRequest): PaymentPayload | Promise<PaymentPayload>;
}

/** A payment in a ledger. */
export interface SentPayment {
  /** The paying message. */
  readonly message: Message;
  /** The chosen option. */
  readonly requirements: PaymentRequirements;
}

/** Remembers payments, so that nothing is paid twice. Use a database if the payer outlives a process. */
export interface PaymentLedger {
  /**
   * Stores the payment of a task, or returns the one that is already stored. The payment must be durable when this
   * resolves, because the payer then sends the message. If this rejects, the payer does not send it.
   */
  keep(task: string, payment: SentPayment): SentPayment | Promise<SentPayment>;
  /** The payment of a task. */
  find(task: string): SentPayment | undefined | Promise<SentPayment | undefined>;
  /** Whether another payment fits. Called before signing. Default: yes. */
  hasRoom?(): boolean | Promise<boolean>;
}

/** Options of `memoryLedger()`. */
export interface MemoryLedgerOptions {
  /** Memory for all payments, in bytes. Default 16 MiB, about 4,000 payments. */
  readonly bytes?: number;
}

/** Largest size of one payment in memory, in bytes (UTF-16). */
const largest = 2 * (maxPayment + maxOption + maxCart + (8 << 10));

/**
 * A ledger in memory, for payers that do not outlive their process. It never forgets a payment, because the client could pay
 * a forgotten one again. When full, the payer refuses with `full` before it signs, and `keep()` throws `TooManyRequests`.
 *
 * @throws TypeError if `bytes` cannot hold one payment.
 */
export function memoryLedger({ bytes = 16 << 20 }: MemoryLedgerOptions = {}): PaymentLedger {
  if (!(bytes >= largest))
    throw new TypeError(`bytes must be at least ${largest}, the size of one payment; got ${bytes}`);
  const payments = new Map<string, string>();
  let taken = 0;
  const find = (task: string): SentPayment | undefined => {
    const text = payments.get(task);
    return text === undefined ? undefined : (JSON.parse(text) as SentPayment);
  };
  return {
    keep(task, payment) {
      const before = find(task);
      if (before !== undefined) return before;
      // A string has a known size, and callers cannot change it.
      const text = JSON.stringify(payment);
      const own = memoryOf(task, text);
      if (own > largest || taken + own > bytes)
        throw new A2AError("TooManyRequests", "The payment does not fit into the ledger");
      payments.set(task, text);
      taken += own;
      return payment;
    },
    find,
    hasRoom: () => taken + largest <= bytes,
  };
}
