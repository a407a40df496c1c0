/** What the caller of a command got wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What went wrong in a command's own work (a file, an agent module), already in words for its user: exit code 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
