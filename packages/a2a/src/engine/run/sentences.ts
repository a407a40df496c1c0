/** Sentences that a client reads. The cause is in the operator's log. */
export const safeSentences = {
  failed: "The agent failed and could not complete this task.",
  silent: "The agent gave no answer.",
  invalid: "The agent gave an invalid answer.",
  idle: "The agent gave no sign of life for too long.",
  late: "The agent did not finish in time.",
  lost: "The server was interrupted while it worked on this task, and the agent cannot resume it.",
  fatal: "The server could not work on this task: it was interrupted each time it tried to.",
  unreadable: "The server could not go on with this task.",
  gaveUp: "The agent was interrupted too often while it worked on this task.",
  full: "The task has become larger than a task may be.",
  stopped: "The server was stopped while it worked on this task.",
} as const;
