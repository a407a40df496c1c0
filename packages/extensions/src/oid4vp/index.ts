/**
 * OID4VP in-task authorization (experimental extension of A2A, v1): agents that ask for verifiable credentials in a task, and clients
 * whose wallets present them.
 * @packageDocumentation
 */

import { type JsonValue, type StandardSchema } from "@parley/a2a/internal/model/index";
import {
  type AgentYield,
  AuthorizationNotGiven,
  type EventReads,
  type ExtensionTurn,
  type ExtensionTypes,
  type MetadataField,
} from "@parley/a2a/internal/protocol/index";
import { type DefinedExtension, defineExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { mistake } from "../shared/values.ts";
import {
  metadataSchema,
  type Oid4vpMetadata,
  type Oid4vpRequest,
  oid4vpUri,
  paramsSchema,
  validRequest,
  WalletSchemes,
  type WalletSchemesOptions,
} from "./request.ts";

export {
  presentWith,
  type PresentationRequest,
  type PresentationWallet,
  type PresentingClient,
  type PresentOptions,
} from "./present.ts";
export {
  type WalletSchemesOptions,
  oid4vpUri,
  readOid4vpRequest,
  walletUrl,
  type Oid4vpMetadata,
  type Oid4vpParams,
  type Oid4vpRequest,
} from "./request.ts";

const call = "authorize()";

/** Options of `authorize()`. */
export interface PresentationInit<Outcome = JsonValue> {
  /** The request and its reason, for a person: the text of the status message. At most 2000 characters. */
  readonly reason: string;
  /**
   * Creates the request at the verifier. Not called again after a restart. The verifier posts its outcome to
   * `callbackUrl`: `{"credential": …}` with any JSON, such as the verified claims, or `{"denied": true}`. Anyone who
   * knows this URL can answer, so give it only to the verifier.
   */
  readonly request: (callbackUrl: string) => Oid4vpRequest | Promise<Oid4vpRequest>;
  /** Schema of the outcome. An outcome that does not match counts as a refusal. Default: any JSON. */
  readonly outcome?: StandardSchema<Outcome>;
  /** How long the request stays open, in milliseconds. Default 10 minutes, at most one day. */
  readonly lifetime?: number;
  /** Name of the request in its turn: at most 80 letters, digits and `.:_-`. Default: its number. */
  readonly id?: string;
}

/** Result of `turn.ext()` for OID4VP. */
export interface Presentations {
  /**
   * Asks for a presentation of credentials and waits for the verifier's outcome. Meanwhile the task is AUTH_REQUIRED,
   * and streams stay open. The wallet talks to the verifier: no credential passes through A2A. The wait survives a
   * restart: the function runs again from its start and finds the same request.
   *
   * @returns the outcome as the verifier posted it.
   * @throws AuthorizationNotGiven if the request is rejected or expires, or the caller sends another message. Do not catch it.
   */
  authorize<Outcome = JsonValue>(init: PresentationInit<Outcome>): AsyncGenerator<AgentYield, Outcome, void>;
}

class TurnPresentations implements Presentations {
  readonly #turn: ExtensionTurn;
  readonly #schemes: WalletSchemes;
  #count = 0;

  constructor(turn: ExtensionTurn, schemes: WalletSchemes) {
    this.#turn = turn;
    this.#schemes = schemes;
  }

  async *authorize<Outcome = JsonValue>(init: PresentationInit<Outcome>): AsyncGenerator<AgentYield, Outcome, void> {
    const { rows, number } = this.#turn;
    this.#count += 1;
    const { id = String(this.#count), reason, lifetime } = init;
    if (!/^[\w.:-]{1,80}$/.test(id)) throw mistake(call, "id must be 1 to 80 letters, digits and .:_-");
    const key = `request ${number} ${id}`;
    let made: Oid4vpRequest | undefined;
    const open = await this.#turn.requestAuthorization({
      form: "callback",
      reason,
      id: `oid4vp-${id}`,
      ...(lifetime !== undefined && { lifetime }),
      // The link of this request goes to the verifier only. The visible request has its own row.
      link: async (callbackUrl) => {
        made = valid(await init.request(callbackUrl), this.#schemes);
        await rows.store([{ op: "set", key, value: JSON.stringify(made) }]);
        return callbackUrl;
      },
    });
    yield shown(reason, made ?? (await this.#stored(key)));
    const given = await open.credential();
    await rows.store([{ op: "delete", key }]);
    const outcome = await outcomeOf(given, init.outcome);
    yield { kind: "status", state: "TASK_STATE_WORKING" };
    return outcome;
  }

  /** The request that was shown before a restart. */
  async #stored(key: string): Promise<Oid4vpRequest> {
    const row = (await this.#turn.rows.read()).find((each) => each.key === key);
    if (row === undefined) throw mistake(call, "the request of this turn is not stored");
    return JSON.parse(row.value) as Oid4vpRequest;
  }
}

function shown(reason: string, request: Oid4vpRequest): AgentYield {
  const metadata = { [oid4vpUri]: { authorizationRequest: { ...request } } };
  const message = { parts: [{ text: reason }], metadata, extensions: [oid4vpUri] };
  return { kind: "status", state: "TASK_STATE_AUTH_REQUIRED", message };
}

async function outcomeOf<Outcome>(given: JsonValue, schema: StandardSchema<Outcome> | undefined): Promise<Outcome> {
  if (schema === undefined) return given as Outcome;
  const result = await schema["~standard"].validate(given);
  if (result.issues === undefined) return result.value;
  const cause = new Error(result.issues.map(({ message }) => message).join("; "));
  throw new AuthorizationNotGiven("denied", "The outcome of the verifier does not match the agent's schema", { cause });
}

function valid(request: Oid4vpRequest, schemes: WalletSchemes): Oid4vpRequest {
  const checked = validRequest(request, schemes);
  if (checked !== undefined) return checked;
  throw mistake(
    call,
    "request() must return a client_id, and either an absolute request_uri or a request, both of the same client",
  );
}

interface Oid4vpTypes extends ExtensionTypes {
  readonly metadata: { readonly message: Readonly<Record<"authorization", MetadataField<Oid4vpMetadata>>> };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: Presentations;
  readonly event: EventReads<Oid4vpTypes>;
}

/** The OID4VP extension. `event.ext(oid4vp)?.message.authorization` has the request of a status message. */
export type Oid4vpExtension = DefinedExtension<string, Oid4vpTypes>;

/**
 * OID4VP in-task authorization: an agent asks for a presentation of credentials in the middle of a task.
 *
 * @example
 * ```ts
 * const server = await serve(agent, { extensions: [oid4vp] });
 * ```
 */
export const oid4vp: Oid4vpExtension = oid4vpWith({});

/**
 * Creates an `oid4vp` with more URI schemes of wallet apps. The agent and its clients must use the same schemes.
 *
 * @throws TypeError for a scheme that no wallet can have, such as `javascript`.
 *
 * @example
 * ```ts
 * const presentations = oid4vpWith({ walletSchemes: ["com.example.wallet"] });
 * ```
 */
export function oid4vpWith(options: WalletSchemesOptions): Oid4vpExtension {
  const schemes = new WalletSchemes(options);
  return defineExtension({
    uri: oid4vpUri,
    description: "Provides an option to use OpenID for Verifiable Presentations (OID4VP) for In-Task Authorization",
    params: { oid4vpVersions: ["1.0"] },
    paramsSchema: standardSchema(paramsSchema),
    metadata: { message: { authorization: { key: oid4vpUri, schema: standardSchema(metadataSchema(schemes)) } } },
    onTurnStart: (turn): Presentations => new TurnPresentations(turn, schemes),
  });
}
