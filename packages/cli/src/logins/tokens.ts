import type { StoredTokens, TokenKey, TokenStore } from "@parley/a2a/credentials";
import type { Login, Logins, Secrets } from "./logins.ts";

/** The secret of a login that has its tokens, as JSON: those of each issuer, client and resource. */
const member = "tokens";

type Tokens = Readonly<Record<string, StoredTokens>>;

function nameOf({ issuer, clientId, resource, subject = "" }: TokenKey): string {
  return JSON.stringify([issuer, clientId, resource, subject]);
}

function tokensOf(secrets: Secrets): Tokens {
  return JSON.parse(secrets[member] ?? "{}") as Tokens;
}

function withTokens(secrets: Secrets, key: TokenKey, tokens: StoredTokens | undefined): Secrets {
  const { [nameOf(key)]: _, ...others } = tokensOf(secrets);
  return { ...secrets, [member]: JSON.stringify(tokens === undefined ? others : { ...others, [nameOf(key)]: tokens }) };
}

/** Keeps the tokens of a new login, until it is known that the agent accepts them. */
export class NewTokens implements TokenStore {
  /** The secrets of the login, with its tokens. */
  secrets: Secrets;
  /** What the tokens are for. */
  key: TokenKey | undefined;

  constructor(secrets: Secrets) {
    this.secrets = secrets;
  }

  get(key: TokenKey): StoredTokens | undefined {
    return tokensOf(this.secrets)[nameOf(key)];
  }

  set(key: TokenKey, tokens: StoredTokens | undefined): void {
    this.secrets = withTokens(this.secrets, key, tokens);
    this.key = key;
  }
}

/** The tokens of a stored login. */
export class LoginTokens implements TokenStore {
  readonly #logins: Logins;
  readonly #login: Login;
  #known: Promise<Secrets> | undefined;

  constructor(logins: Logins, login: Login) {
    this.#logins = logins;
    this.#login = login;
  }

  /** All that is secret of the login. */
  secrets(): Promise<Secrets> {
    return (this.#known ??= this.#logins.secrets(this.#login));
  }

  async get(key: TokenKey): Promise<StoredTokens | undefined> {
    return tokensOf(await this.secrets())[nameOf(key)];
  }

  async set(key: TokenKey, tokens: StoredTokens | undefined): Promise<void> {
    const changed = withTokens(await this.#logins.secrets(this.#login), key, tokens);
    await this.#logins.update(this.#login, changed);
    this.#known = Promise.resolve(changed);
  }

  exclusively<T>(_key: TokenKey, run: () => Promise<T>): Promise<T> {
    return this.#logins.exclusively(this.#login, () => {
      // Another process may have renewed them while this one waited.
      this.#known = undefined;
      return run();
    });
  }
}
