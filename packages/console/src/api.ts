/* The messages between the application in the browser and its server. Both import this file. */

import type { AgentCard } from "@parley/a2a/internal/model/index";

/** `GET api/session`: the mode of the console, and its agents. */
export interface Session {
  /** `inspect`: the user connects to any agents. `server`: the console shows the agents of the server that serves it. */
  readonly mode: "inspect" | "server";
  readonly agents: readonly AgentEntry[];
}

/** `GET sign-in`: how to sign in. Requires no credentials. */
export interface SignIn {
  /** `inspect`: the user signs in with the URL that the command printed. */
  readonly mode: Session["mode"];
  readonly bearer: boolean;
  readonly basic: boolean;
  /** Names of headers that have API keys. */
  readonly apiKeys: readonly string[];
}

/** `GET api/operators`: the location of the operators' API. `null`: the console has none. */
export interface OperatorsAnswer {
  readonly operators: OperatorsEntry | null;
}

/** The path of the operators' API, and its authentication schemes. */
export interface OperatorsEntry {
  /** Path on the origin of the page. */
  readonly path: string;
  /** The value for `parley ops --url`. */
  readonly url: string;
  readonly bearer: boolean;
  readonly basic: boolean;
  /** Names of headers that have API keys. */
  readonly apiKeys: readonly string[];
}

/** A connected or served agent. */
export interface AgentEntry {
  /** Identifies the agent in this console, and in its links. */
  readonly id: string;
  /** The URL that the user connected to. */
  readonly url: string;
  /** Path of the agent's JSON-RPC and REST bindings on the console's own origin. */
  readonly path: string;
  /** The binding that the console uses for it, such as `JSONRPC`. */
  readonly binding: string;
  /** The protocol version that the console uses for it, such as `0.3`. */
  readonly version: string;
  /** The card from the agent. */
  readonly card: AgentCard;
  /** Path on the console's own origin of the card that callers get. Absent: `card` is already that card. */
  readonly cardPath?: string;
  /** The tenant (routing label) of an agent that shares its path with others. */
  readonly tenant?: string;
  /** How the user signs in to the agent. Absent: the user set credentials when connecting, or the inspector has no login store. */
  readonly signIn?: AgentSignIn;
}

/** How the user of an inspector signs in to an agent. */
export interface AgentSignIn {
  /** The security requirements of the card, in order. The user must satisfy all schemes of one of them. */
  readonly ways: readonly (readonly SignInScheme[])[];
  /** Whether the agent rejects anonymous calls. */
  readonly isRequired: boolean;
  /** The logins that are stored for the agent, one for each scheme. */
  readonly logins: readonly StoredLogin[];
}

/** A security scheme of a card. */
export interface SignInScheme {
  /** Its name on the card. */
  readonly name: string;
  /** Kind of the scheme. `oauth2` includes OpenID Connect. The console cannot sign in with `mutualTls` and `unsupported`. */
  readonly kind: "apiKey" | "basic" | "bearer" | "oauth2" | "mutualTls" | "unsupported";
  /** The scopes that the requirement names. */
  readonly scopes: readonly string[];
  /** The OAuth flows: in a browser on this machine, with a code on any device, with a client secret. */
  readonly flows: readonly LoginFlow[];
}

/** The OAuth flows of a login, by their names in `parley login --flow`. */
export const loginFlows = ["browser", "device", "client"] as const;

/** An OAuth flow of a login. */
export type LoginFlow = (typeof loginFlows)[number];

/** A stored login, without its secrets. */
export interface StoredLogin {
  /** Name of the scheme. */
  readonly scheme: string;
  /** The account that is logged in, if known. */
  readonly account?: string;
  /** The time of the login, in ISO 8601. */
  readonly since: string;
  /** The place where its secrets are stored. */
  readonly secretsIn: "keychain" | "file";
}

/** The user's input for a scheme. `POST api/agents/ID/login` takes a list that satisfies one requirement of the card. */
export interface SchemeLogin {
  /** Name of the scheme. */
  readonly name: string;
  /** Default: the first flow of the scheme. */
  readonly flow?: LoginFlow;
  /** The OAuth client. */
  readonly clientId?: string;
  /** Additional scopes, separated by spaces. */
  readonly scopes?: string;
  /** The issuer of the authorization server. Default: the issuer on the card. */
  readonly issuer?: string;
  /** User name for Basic. */
  readonly username?: string;
  /** The API key, token, password or client secret. */
  readonly secret?: string;
}

/** A line of the answer to `POST api/agents/ID/login`. Aborting the request aborts the login. */
export type LoginEvent =
  | {
      /** The user must open a page of the authorization server. */
      readonly kind: "page";
      /** Its URL. */
      readonly url: string;
    }
  | {
      /** The user must enter a code on a page of the authorization server. */
      readonly kind: "code";
      /** The page. */
      readonly url: string;
      /** The page with the code filled in. */
      readonly complete?: string;
      /** The code to enter. */
      readonly code: string;
    }
  | {
      /** The console has stored the login and uses it. */
      readonly kind: "done";
    }
  | {
      /** The login failed. Nothing was stored. */
      readonly kind: "failed";
      /** The reason. */
      readonly message: string;
    };

/** The bindings of A2A, by their names on cards. */
export const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;

export type Binding = (typeof bindings)[number];

/** `POST api/agents`: connects to an agent. The answer is its `AgentEntry`. */
export interface ConnectRequest {
  /** Base URL of the agent, or URL of its card. */
  readonly url: string;
  /** Default: the first interface of the card that answers. */
  readonly binding?: Binding;
  /** Headers of every request, such as credentials. They stay in the memory of the console's process. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `POST api/wire`: sends a request unchanged. The answer has the number of the exchange; the log has the response. */
export interface RawRequest {
  /** The agent whose credentials the console adds. */
  readonly agent: string;
  /** HTTP method. */
  readonly method: string;
  /** An HTTP URL. */
  readonly url: string;
  /** Its headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its body. Absent: it has none. */
  readonly body?: string;
}

/**
 * One line of the wire log. `GET api/wire?after=N` streams the lines as JSON and stays open for new ones. Secret header values are
 * masked before they are stored.
 */
export type WireRecord = RequestRecord | ResponseRecord | PieceRecord | EndRecord;

interface AnyRecord {
  /** Number of the record, from 1. */
  readonly n: number;
  /** Number of the exchange. */
  readonly exchange: number;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** Agent id of webhooks: their sender is unauthenticated. */
export const webhooks = "webhooks";

/** A request was sent, or a webhook was received. */
export interface RequestRecord extends AnyRecord {
  /** Always `request`. */
  readonly kind: "request";
  /** `AgentEntry.id`, or `webhooks`. */
  readonly agent: string;
  /** HTTP method; for gRPC, whose bytes the console does not see, the operation. */
  readonly method: string;
  /** The URL, with keys in the query masked. */
  readonly url: string;
  /** Its headers, with secrets masked. */
  readonly headers: HeaderList;
  /** Its body. */
  readonly body: CapturedBody;
  /** The A2A 1.0 operation, such as `SendMessage`, if known. */
  readonly operation?: string;
}

/** The head of a response arrived. */
export interface ResponseRecord extends AnyRecord {
  /** Always `response`. */
  readonly kind: "response";
  /** HTTP status. */
  readonly status: number;
  /** Its headers, with secrets masked. */
  readonly headers: HeaderList;
}

/** A body arrived, or an event of a stream. */
export interface PieceRecord extends AnyRecord {
  /** Always `piece`. */
  readonly kind: "piece";
  /** The bytes. */
  readonly body: CapturedBody;
}

/** The exchange is over. */
export interface EndRecord extends AnyRecord {
  /** Always `end`. */
  readonly kind: "end";
  /** The reason why the exchange failed. Absent: it completed. */
  readonly error?: string;
}

/** Names in lower case, with their values, in the order sent. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** A body, for display. */
export interface CapturedBody {
  /** Length of the whole body. */
  readonly bytes: number;
  /** The body as UTF-8, truncated at 1 Mi characters. */
  readonly text: string;
  /** Whether `text` is truncated. */
  readonly isCut?: true;
}
