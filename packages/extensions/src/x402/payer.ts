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
import { isSame } from "./match.ts";
import { readPayment, submission } from "./read.ts";
import { fitting, maxCart, maxOption, maxPayment, payloadSchema } from "./schemas.ts";
import {
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentRequirements,
  x402Keys,
} from "./types.ts";

/* Clients that pay: within limits, and once for a task. */

/** What may be paid: in which token, and how much of it for a task. */
export interface PaymentLimit {
  /** The network, such as `base`. */
  readonly network: string;
  /** The token: the address of its contract. */
  readonly asset: string;
  /** The most that is paid for one task, in the smallest unit of the token. */
  readonly maxAmount: bigint | string;
  /** Who may be paid. Default: anyone. */
  readonly payTo?: readonly string[];
}

/** Options of `createPayer()`. */
export interface PayerOptions {
  /** Signs payments. */
  readonly wallet: Wallet;
  /** What may be paid. What is in no limit is not paid. The first limit with an option that fits is taken. */
  readonly limits: readonly PaymentLimit[];
  /** Schemes that may be used. Default: `exact`, which pays what the option says and no more. */
  readonly schemes?: readonly string[];
  /**
   * For how many seconds a payment may be good at most: until then the agent may take the money. An option that wants more
   * (`maxTimeoutSeconds`) is not paid, and a wallet signs for no longer where an option says nothing. Default 3600, one hour.
   */
  readonly maxTimeoutSeconds?: number;
  /** Remembers what was paid. Default: `memoryLedger()`, for as long as the payer lives. */
  readonly ledger?: PaymentLedger;
  /** Asked before each payment, such as a person. `false`: it is refused. Default: the limits decide alone. */
  readonly confirm?: (requirements: PaymentRequirements, task: Task) => boolean | Promise<boolean>;
  /** Time, in milliseconds since the Unix epoch. Default: that of the system. */
  readonly now?: () => number;
}

/** What a payer needs of a client. A `Client` of `@parley/a2a` has it. */
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
   * Pays for a task that asks for it, and waits until it is over, or asks for something else. Where the payment was sent before, the same
   * message is sent again, which an agent takes once: a payer never signs a second payment for a task, not even after one that failed.
   *
   * @throws PaymentRefused where it is not paid. The agent is told so, except where something was paid for the task before, or could not be
   * remembered.
   */
  pay(client: PayingClient, task: Task, options?: { readonly signal?: AbortSignal }): Promise<Paid>;
}

/** A task after its payment. */
export interface Paid {
  /** The task as it is now. */
  readonly task: Task;
  /** The option that was chosen. */
  readonly requirements: PaymentRequirements;
  /** What the agent says of the payment. It is a stranger's word: the network knows what was paid. */
  readonly receipts: readonly PaymentReceipt[];
}

/** For how many seconds a payment may be good, where the payer says nothing. */
const usualTimeout = 3600;

/** A payment that was not made. */
export class PaymentRefused extends A2AError {
  /**
   * - `none`: the task asks for no payment, or in a way that cannot be read.
   * - `limit`: no option is within the limits, and good for no longer than `maxTimeoutSeconds`.
   * - `confirm`: `confirm` said no.
   * - `paid`: the task was paid before, and asks again.
   * - `full`: the ledger has no room to remember the payment. The agent is not told: a payer with another ledger may pay.
   */
  readonly kind: "none" | "limit" | "confirm" | "paid" | "full";
  /** The task. */
  readonly task: Task;

  /** Payers make these. */
  constructor(kind: PaymentRefused["kind"], message: string, task: Task) {
    super("Aborted", message);
    this.kind = kind;
    this.task = task;
  }
}

/**
 * Makes a payer.
 *
 * @throws TypeError for an amount that is none, and for a time that is none.
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
    throw new TypeError(`limits[${at}].maxAmount must be a whole number, as a bigint or in decimal digits as text`);
  }
  if (!Number.isInteger(maxTimeoutSeconds) || maxTimeoutSeconds < 1) {
    throw new TypeError("maxTimeoutSeconds must be a whole number of seconds, 1 or more");
  }
  const pay = async (
    client: PayingClient,
    task: Task,
    name: string,
    { signal }: { readonly signal?: AbortSignal },
  ): Promise<Paid> => {
    const before = await ledger.find(name);
    const payment = readPayment(task);
    if (payment?.status !== "payment-required" || payment.required === undefined) {
      throw new PaymentRefused("none", "The task asks for no payment that can be read", task);
    }
    if (before !== undefined) {
      // After a failure the agent asks again: the message that it has is not sent a second time.
      if (payment.receipts.length > 0 || payment.error !== undefined) throw paidBefore(task);
      return sent(client, before, task, signal);
    }
    const chosen = choose(payment.required, options);
    const refusal = chosen === undefined ? "limit" : (await confirm?.(chosen, task)) === false ? "confirm" : undefined;
    if (chosen === undefined || refusal !== undefined) {
      await reject(client, task, signal);
      throw new PaymentRefused(refusal ?? "limit", sentences[refusal ?? "limit"], task);
    }
    const { x402Version } = payment.required;
    if (ledger.hasRoom !== undefined && !(await ledger.hasRoom())) {
      throw new PaymentRefused("full", sentences.full, task);
    }
    const payload = await wallet.sign({
      requirements: chosen,
      x402Version,
      maxTimeoutSeconds,
      ...(signal !== undefined && { signal }),
    });
    if (fitting(payloadSchema, payload) === undefined) throw new TypeError("The wallet has signed what is no payment");
    const message: Message = {
      messageId: crypto.randomUUID(),
      role: "ROLE_USER",
      taskId: task.id,
      ...(task.contextId !== undefined && { contextId: task.contextId }),
      ...submission(task, payload, new Date(now()).toISOString()),
    };
    return sent(client, await kept(ledger, name, { message, requirements: chosen }, task), task, signal);
  };
  // An extended card, which the agent may change at any time, must not make another agent of it.
  const agents = new WeakMap<PayingClient, string>();
  // Two calls for one task at a time would both sign.
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

const sentences = {
  limit: "No option is within the limits of the payer",
  confirm: "The payment was not confirmed",
  full: "The ledger of the payer has no room to remember another payment",
} as const;

/** What is not remembered is not sent. */
async function kept(ledger: PaymentLedger, name: string, payment: SentPayment, task: Task): Promise<SentPayment> {
  try {
    return await ledger.keep(name, payment);
  } catch (error) {
    if (hasCode(error, "TooManyRequests")) throw new PaymentRefused("full", sentences.full, task);
    throw error;
  }
}

function paidBefore(task: Task): PaymentRefused {
  return new PaymentRefused("paid", "The task was paid before, and asks again", task);
}

/** A task is known by its agent and its id: another agent may use the same id. */
function agentOf({ card }: PayingClient): string {
  return card.supportedInterfaces[0]?.url ?? card.name;
}

/** The option that is paid: the first that is within a limit, in the order of the limits. */
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
  signal: AbortSignal | undefined,
): Promise<Paid> {
  const options = signal === undefined ? {} : { signal };
  const { task: answered } = await client.sendMessage({ message }, options);
  // An agent may answer before it is over.
  const isOver = answered !== undefined && stateKinds[answered.status.state] !== "active";
  const task = isOver ? answered : await client.waitFor(id, options);
  return { task, requirements, receipts: readPayment(task)?.receipts ?? [] };
}

/** Tells the agent that nothing is paid (v0.2 §5.4). */
async function reject(client: PayingClient, task: Task, signal: AbortSignal | undefined): Promise<void> {
  const message: Message = {
    messageId: crypto.randomUUID(),
    role: "ROLE_USER",
    taskId: task.id,
    ...(task.contextId !== undefined && { contextId: task.contextId }),
    parts: [{ text: "The payment is refused." }],
    metadata: { [x402Keys.status]: "payment-rejected" },
  };
  await client.sendMessage({ message }, signal === undefined ? {} : { signal });
}

/**
 * Sends a message, and pays where the agent asks for it. The client has to activate the extension: `connect(url, { extensions: [x402()] })`.
 *
 * @returns the answer: a direct reply, or the task after its payment.
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
  const request: SendMessageRequest =
    typeof message === "string"
      ? { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: message }] } }
      : message;
  const response = await client.sendMessage(request, options);
  if (response.task === undefined || readPayment(response.task)?.status !== "payment-required") return response;
  const payment = await payer.pay(client, response.task, options);
  return { task: payment.task, payment };
}

/** What a wallet is asked to sign. */
export interface SignRequest {
  /** The option that was chosen. */
  readonly requirements: PaymentRequirements;
  /** The version of x402 that the agent speaks. */
  readonly x402Version: number;
  /**
   * For how many seconds the payment may be good at most. Options for longer are refused before; one that says nothing is signed for as long as
   * the wallet likes, within this. Absent: as the wallet likes.
   */
  readonly maxTimeoutSeconds?: number;
  /** Aborted when the payment is no longer wanted. */
  readonly signal?: AbortSignal;
}

/** Signs payments. Keys stay in it: neither an agent nor a model may have them (v0.1 §9). */
export interface Wallet {
  /** Signs a payment of exactly what the option says. Rejects where it does not want to. */
  sign(request: SignRequest): PaymentPayload | Promise<PaymentPayload>;
}

/* What a payer remembers of what it has paid. */

/** A payment, as a payer remembers it. */
export interface SentPayment {
  /** The message that pays. */
  readonly message: Message;
  /** The option that was chosen. */
  readonly requirements: PaymentRequirements;
}

/** Remembers what was paid, so that nothing is paid twice. Keep it in a database where a payer lives longer than a process. */
export interface PaymentLedger {
  /**
   * Keeps the payment of a task, unless there is one: then that one is returned. It has to be stored when this resolves: the
   * message is sent after that, and is not sent where this rejects.
   */
  keep(task: string, payment: SentPayment): SentPayment | Promise<SentPayment>;
  /** The payment of a task. */
  find(task: string): SentPayment | undefined | Promise<SentPayment | undefined>;
  /** Whether another payment can be kept. It is asked before a payment is signed. Default: there is room. */
  hasRoom?(): boolean | Promise<boolean>;
}

/** Options of `memoryLedger()`. */
export interface MemoryLedgerOptions {
  /** Memory that the payments may take, in bytes. Default 16 MiB, for about 4,000 of them. */
  readonly bytes?: number;
}

/** What one payment may take, in bytes: the payment, the option and the cart are bounded, and ids take little besides. Texts have two bytes a unit. */
const largest = 2 * (maxPayment + maxOption + maxCart + (8 << 10));

/**
 * A ledger in memory, for clients that end with their process. It forgets nothing, since a payment that is forgotten could be made again. When
 * it is full, nothing more is paid: the payer refuses with `full` before it signs, and `keep()` throws `TooManyRequests`.
 *
 * @throws TypeError for a bound without room for one payment.
 */
export function memoryLedger({ bytes = 16 << 20 }: MemoryLedgerOptions = {}): PaymentLedger {
  if (!(bytes >= largest)) throw new TypeError(`bytes must be at least ${largest}, the room of one payment`);
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
      // As text: its size is known, and nobody changes it later.
      const text = JSON.stringify(payment);
      const own = memoryOf(task, text);
      if (own > largest || taken + own > bytes)
        throw new A2AError("TooManyRequests", "The ledger has no room for this payment");
      payments.set(task, text);
      taken += own;
      return payment;
    },
    find,
    hasRoom: () => taken + largest <= bytes,
  };
}
