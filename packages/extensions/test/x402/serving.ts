import { onTestFinished } from "vitest";
import type { Client } from "@parley/a2a/internal/client/index";
import {
  testFacilitator,
  testWallet,
  x402,
  x402Keys,
  type ChargeInit,
  type PaymentPayload,
  type PaymentRequiredResponse,
  type TestFacilitator,
  type TestWalletOptions,
  type Wallet,
  type X402Extension,
} from "../../src/x402/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { text, type JsonObject, type Message, type Task } from "@parley/a2a/internal/model/index";
import type { Agent, AgentYield, Turn } from "@parley/a2a/internal/protocol/index";
import { testAgent, type TestAgent, type TestAgentOptions } from "@parley/testing";
import { option } from "./support.ts";

type PaidTurn = Turn<{ extensions: [X402Extension] }>;
type OnMessage = (turn: PaidTurn, payments: X402Extension) => AsyncGenerator<AgentYield, void, void>;

/** An agent that is paid. */
function selling(payments: X402Extension, onMessage: OnMessage, more: Partial<Agent> = {}): Agent {
  const agent = defineAgent({
    name: "Painter",
    description: "Paints for money",
    version: "1",
    skills: [],
    resumable: true,
    extensions: [payments],
    onMessage: (turn) => onMessage(turn, payments),
  });
  return { ...agent, ...more };
}

/** A painter charges, paints, and shows the picture. `init` changes the charge. */
export function painting(init: Partial<ChargeInit> = {}): OnMessage {
  return async function* (turn, payments) {
    const charge = turn.ext(payments)?.charge({
      accepts: [option],
      async *work() {
        yield turn.artifact({ artifactId: "picture", parts: [text(`A picture of ${turn.text}`)] });
      },
      ...init,
    });
    if (charge === undefined) throw new Error("The extension is not active");
    yield* charge;
  };
}

export interface Serving {
  readonly under: TestAgent;
  readonly client: Client;
  readonly facilitator: TestFacilitator;
  readonly payments: X402Extension;
  readonly wallet: Wallet & { readonly signed: number };
  /** Signs the payment that a task requests, with changes. */
  pay(task: Task | undefined, change?: SubmittedChange): Promise<Task>;
}

export interface SubmittedChange {
  readonly payment?: Partial<PaymentPayload>;
  readonly authorization?: JsonObject;
  readonly message?: Partial<Message>;
}

export interface ServingInit {
  readonly facilitator?: TestFacilitator;
  readonly onMessage?: OnMessage;
  readonly options?: TestAgentOptions;
  readonly wallet?: Omit<TestWalletOptions, "now">;
  readonly version?: "0.1" | "0.2";
  readonly agent?: Partial<Agent>;
}

/** Serves an agent that is paid, and a client that has activated the extension. */
export async function serving(init: ServingInit = {}): Promise<Serving> {
  const { facilitator = testFacilitator(), version = "0.1" } = init;
  const payments = x402({ facilitator, version });
  const under = await testAgent(selling(payments, init.onMessage ?? painting(), init.agent), init.options);
  onTestFinished(() => under.close());
  const client = await under.connect({ extensions: [payments.uri] });
  const wallet = testWallet({ ...init.wallet, now: () => under.clock.now() });
  const pay: Serving["pay"] = async (task, change = {}) => {
    const message = await submitted(wallet, task, change);
    const response = await client.sendMessage({ message });
    if (response.task === undefined) throw new Error("There is no task");
    return response.task;
  };
  return { under, client, facilitator, payments, wallet, pay };
}

let messages = 0;

/** The message that pays for the first option of a task. */
export async function submitted(
  wallet: Wallet,
  task: Task | undefined,
  change: SubmittedChange = {},
): Promise<Message> {
  const required = task?.status.message?.metadata?.[x402Keys.required] as unknown as PaymentRequiredResponse;
  const [requirements = option] = required.accepts;
  const signed = await wallet.sign({ requirements, x402Version: required.x402Version });
  const { authorization } = signed.payload as { readonly authorization: JsonObject };
  const changed = { ...signed.payload, authorization: { ...authorization, ...change.authorization } };
  const payload = { ...signed, payload: changed, ...change.payment };
  messages += 1;
  return {
    messageId: `payment-${messages}`,
    role: "ROLE_USER",
    taskId: task?.id ?? "",
    parts: [{ text: "Here is the payment authorization." }],
    metadata: { [x402Keys.status]: "payment-submitted", [x402Keys.payload]: payload as unknown as JsonObject },
    ...change.message,
  };
}

/** The content of a status message about a payment. */
export function said(task: Pick<Task, "status"> | undefined): JsonObject {
  return task?.status.message?.metadata ?? {};
}

/** The states of the payment in the history of a task, oldest first. */
export function statesOf(task: Task): readonly unknown[] {
  const messages = [...(task.history ?? []), ...(task.status.message === undefined ? [] : [task.status.message])];
  const states = new Map(messages.map((each) => [each.messageId, each.metadata?.[x402Keys.status]]));
  return [...states.values()].filter((state) => state !== undefined);
}
