import { Option } from "commander";
import type { CallOptions } from "../connection.ts";
import type { ListLoginsOptions, LoginOptions } from "../login.ts";
import { agentUrl, callOptions, collect, url, type Program } from "../options.ts";

export function addLogin({ io, command, finish }: Program): void {
  callOptions(
    command("login", {
      summary: "Log in to an agent",
      description:
        "Reads the agent's card, asks for what its security schemes need, and tries it. Later commands use it for this address and what is below it. It is kept in the keychain of the operating system, or in a file that only you may read. Secrets are typed, or read from standard input, a line each.",
      examples: [
        "echo s3cret | parley login http://localhost:4000",
        "echo s3cret | parley login http://localhost:4000 --with-token",
        "parley login http://localhost:4000 --client-id native --scope offline_access",
      ],
    })
      .argument(...url)
      .option("--scheme <name>", "the security scheme of the card; default: the first that can be used")
      .option("--with-token", "give a token that you have, for a scheme that takes bearer tokens")
      .option("--username <name>", "user name for HTTP Basic; default: it is asked for")
      .addOption(
        new Option(
          "--flow <flow>",
          "how to get a token of OAuth: in a browser here, with a code in any browser, or with the secret of a client; default: the first that the card has",
        ).choices(["browser", "device", "client"]),
      )
      .option("--client-id <id>", "id of this program at the authorization server; default: it is asked for")
      .option("--with-secret", "the client has a secret, which is asked for")
      .option("--issuer <url>", "the authorization server; default: the one that the card names", agentUrl)
      .option("--scope <scope>", "a further scope to ask for, such as offline_access; repeatable", collect)
      .option("--no-resource", "do not say which agent the token is for, where the server refuses that (RFC 8707)")
      .option("--dpop", "bind the token to a key of this login (RFC 9449)"),
  ).action(async (at: string, options: LoginOptions & CallOptions) => {
    // Loaded here, so that other commands start without it.
    const { login } = await import("../login.ts");
    finish(await login(io, at, options));
  });
}

export function addLogout({ io, command, finish }: Program): void {
  command("logout", {
    summary: "Log out of an agent",
    description: "Deletes what is kept of the login, its secrets included.",
    examples: ["parley logout http://localhost:4000", "parley logout --all"],
  })
    .argument("[url]", url[1], agentUrl)
    .option("--all", "log out of all agents")
    .action(async (at: string | undefined, options: { readonly all?: boolean }) => {
      const { logout } = await import("../login.ts");
      finish(await logout(io, at, options));
    });
}

export function addWhoami({ io, command, finish }: Program): void {
  command("whoami", {
    summary: "Show where you are logged in",
    description: "With a URL only what is used for that agent. Secrets are not shown.",
    examples: ["parley whoami", "parley whoami --json"],
  })
    .argument("[url]", url[1], agentUrl)
    .option("--json", "print only JSON to standard output, one document a line")
    .action(async (at: string | undefined, options: ListLoginsOptions) => {
      const { whoami } = await import("../login.ts");
      finish(await whoami(io, at, options));
    });
}
