/* What the application in the browser and its server say to each other. The application imports this file, too. */

import type { AgentCard } from "@parley/a2a/internal/model/index";

/** `GET api/session`: what the console shows. */
export interface Session {
  /** `inspect`: agents are connected from here. `server`: the agents of the server that serves the console. */
  readonly mode: "inspect" | "server";
  readonly agents: readonly AgentEntry[];
}

/** `GET sign-in`, which anyone may ask: how to sign in. */
export interface SignIn {
  /** `inspect`: by the URL that the command printed. */
  readonly mode: Session["mode"];
  readonly bearer: boolean;
  readonly basic: boolean;
  /** Names of headers that have API keys. */
  readonly apiKeys: readonly string[];
}

/** An agent that can be talked to. */
export interface AgentEntry {
  /** Identifies the agent in this console, and in its links. */
  readonly id: string;
  /** The URL that it was connected by. */
  readonly url: string;
  /** Path of its JSON-RPC and REST on the console's own origin. */
  readonly path: string;
  /** How the console itself speaks with it, such as `JSONRPC` and `0.3`. */
  readonly binding: string;
  /** The version of A2A that it speaks with it. */
  readonly version: string;
  /** The card as its agent has it. */
  readonly card: AgentCard;
  /** Path of the card on the console's own origin, as callers get it. Absent: `card` is what the agent sent. */
  readonly cardPath?: string;
  /** The protocol's routing label, of an agent that shares its path with others. */
  readonly tenant?: string;
  /** How the user signs in to it. Absent: its credentials came with the connection, or nothing stores logins. */
  readonly signIn?: AgentSignIn;
}

/** How the user of an inspector signs in to an agent. */
export interface AgentSignIn {
  /** The requirements of the card, in its order: all schemes of one of them are needed. */
  readonly ways: readonly (readonly SignInScheme[])[];
  /** Whether no requirement allows anonymous calls. */
  readonly isRequired: boolean;
  /** The logins that are stored for the agent, one for each scheme. */
  readonly logins: readonly StoredLogin[];
}

/** A security scheme of a card. */
export interface SignInScheme {
  /** Its name on the card. */
  readonly name: string;
  /** What signs in with it. `oauth2` includes OpenID Connect; `mutualTls` and `unsupported` need a program. */
  readonly kind: "apiKey" | "basic" | "bearer" | "oauth2" | "mutualTls" | "unsupported";
  /** The scopes that the requirement names. */
  readonly scopes: readonly string[];
  /** The OAuth flows: in a browser on this machine, with a code on any device, with a client secret. */
  readonly flows: readonly LoginFlow[];
}

/** The OAuth flows of a login, by their names in `parley login --flow`. */
export const loginFlows = ["browser", "device", "client"] as const;

/** One of them. */
export type LoginFlow = (typeof loginFlows)[number];

/** A login as it is stored, without its secrets. */
export interface StoredLogin {
  /** Name of the scheme. */
  readonly scheme: string;
  /** Who is logged in, if known. */
  readonly account?: string;
  /** In ISO 8601. */
  readonly since: string;
  /** Where its secrets are. */
  readonly secretsIn: "keychain" | "file";
}

/** What a user enters for a scheme. `POST api/agents/ID/login` takes a list of them, which satisfies one requirement of the card. */
export interface SchemeLogin {
  /** Name of the scheme. */
  readonly name: string;
  /** Default: the first flow of the scheme. */
  readonly flow?: LoginFlow;
  /** The OAuth client. */
  readonly clientId?: string;
  /** Further scopes to ask for, with spaces between them. */
  readonly scopes?: string;
  /** The issuer of the authorization server. Default: that of the card. */
  readonly issuer?: string;
  /** For Basic. */
  readonly username?: string;
  /** The API key, token, password, or secret of the client. */
  readonly secret?: string;
}

/** A line of the answer to `POST api/agents/ID/login`. The login ends when its reader leaves. */
export type LoginEvent =
  | {
      /** The user has to open a page of the authorization server. */
      readonly kind: "page";
      /** Its URL. */
      readonly url: string;
    }
  | {
      /** The user has to enter a code on a page of the authorization server. */
      readonly kind: "code";
      /** The page. */
      readonly url: string;
      /** The page with the code in it. */
      readonly complete?: string;
      /** The code to enter. */
      readonly code: string;
    }
  | {
      /** The login is stored, and used. */
      readonly kind: "done";
    }
  | {
      /** Nothing was stored. */
      readonly kind: "failed";
      /** Why. */
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

/** `POST api/wire`: sends a request as it is. What comes back is in the log. The answer has the number of its exchange. */
export interface RawRequest {
  /** The agent whose credentials go with it. */
  readonly agent: string;
  /** Method of HTTP. */
  readonly method: string;
  /** An HTTP URL. */
  readonly url: string;
  /** Its headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its body. Absent: it has none. */
  readonly body?: string;
}

/**
 * One line of the log of the wire, which `GET api/wire?after=N` sends as lines of JSON, and continues to send. Headers with secrets are
 * masked before they are stored.
 */
export type WireRecord = RequestRecord | ResponseRecord | PieceRecord | EndRecord;

interface AnyRecord {
  /** Number of the record, from 1. */
  readonly n: number;
  /** Number of the request that it belongs to. */
  readonly exchange: number;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** A request was sent. */
export interface RequestRecord extends AnyRecord {
  /** Always `request`. */
  readonly kind: "request";
  /** `AgentEntry.id`. */
  readonly agent: string;
  /** Method of HTTP, or the operation where no bytes are seen, as over gRPC. */
  readonly method: string;
  /** Where it was sent, with keys in the query masked. */
  readonly url: string;
  /** Its headers, with secrets masked. */
  readonly headers: HeaderList;
  /** Its body. */
  readonly body: CapturedBody;
  /** The operation of 1.0 where the console knows it, such as `SendMessage`. */
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

/** A part of a body arrived: the whole body, or an event of a stream. */
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
  /** Why it failed. Absent: it was complete. */
  readonly error?: string;
}

/** Names in lower case, with their values in the order in which they were sent. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Bytes of a body. */
export interface CapturedBody {
  /** All of them, though `text` may have less. */
  readonly bytes: number;
  /** As UTF-8. Cut off at 1 MiB. */
  readonly text: string;
}
