/** A mistake on the command line. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command failed for a reason of its own: a file, an agent module. The message is for the user. Exit code 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
