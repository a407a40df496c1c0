/**
 * What operations may cost, in counts that are the same on every machine, busy or not. A change that needs more raises the
 * bound here, and says why in its commit; one that needs less lowers it.
 */
export interface Budget {
  /** What was counted when the bound was set. */
  readonly was: number;
  readonly atMost: number;
}

/** As exact as the count. */
const exactly = (was: number): Budget => ({ was, atMost: was });
/** A tenth more: the heap's counters know the engine's own work too. */
const bytes = (was: number): Budget => ({ was, atMost: was * 1.1 });
/** A few more: a file is split now and then. */
const files = (was: number): Budget => ({ was, atMost: was + 5 });

/**
 * By measure. Operations: `message` is a send that is answered by a message, `task` one that makes a task with an artifact
 * and completes it, `get` a GetTask, `list` a ListTasks of ten tasks, `chunk` one of a hundred that a stream appends to an
 * artifact without a pause, `event` one that goes out on its own.
 */
export const budgets: Readonly<Record<string, Budget>> = {
  // Asked of SQLite. Chunks that come together go down together.
  "statements of message": exactly(9),
  "statements of task": exactly(13),
  "statements of get": exactly(1),
  "statements of list": exactly(2),
  "statements of chunk": { was: 0.07, atMost: 0.1 },
  "transactions of message": exactly(1),
  "transactions of task": exactly(1),
  "transactions of get": exactly(0),
  "transactions of list": exactly(1),
  "transactions of chunk": { was: 0, atMost: 0.01 },

  // `JSON.parse`.
  "parses of message": exactly(1),
  "parses of task": exactly(2),
  "parses of get": exactly(2),
  "parses of list": exactly(1),
  "parses of chunk": exactly(0),
  // `JSON.stringify`, the request of the test among them.
  "texts of message": exactly(3),
  "texts of task": exactly(10),
  "texts of get": exactly(6),
  "texts of list": exactly(34),
  "texts of chunk": exactly(1),
  // Values that are checked against a schema.
  "checks of message": exactly(2),
  "checks of task": exactly(2),
  "checks of get": exactly(1),
  "checks of list": exactly(1),
  "checks of chunk": exactly(1),
  // Promises, those of the test among them. Each is about a hundredth of the CPU of a message.
  "promises of message": exactly(18),
  "promises of task": exactly(29),
  "promises of get": exactly(13),
  "promises of list": exactly(15),
  "promises of chunk": { was: 4, atMost: 4.1 },

  // Allocated on the heap, on a store in memory, the caller's side included.
  "bytes of message": bytes(18_488),
  "bytes of task": bytes(54_888),
  "bytes of get": bytes(15_480),
  "bytes of list": bytes(70_416),
  "bytes of chunk": bytes(5_901),

  // Out of the server of `serve()`: writes of a socket over HTTP/1.1, frames and bytes over HTTP/2.
  "writes of SSE event": exactly(1),
  "frames of gRPC event": { was: 1, atMost: 1.05 },
  "bytes of gRPC event": { was: 126, atMost: 127 },

  // Webhooks added four: their options, the names that cards declare, and the name of their rows. What delivers is loaded later.
  // Identity added twelve to a handler: audit, requirements, the doors of authorizations, of signed cards and of limits. What checks,
  // signs and counts loads if an option asks for it.
  // Files that are loaded, dependencies among them, until the client is there, a handler is made, and `serve()` listens.
  // Credentials and signed cards added to the client what chooses and checks them. What gets tokens and verifies is loaded later.
  // Files added four to the client, which are its downloads, and three to a handler, which are those of messages.
  // Extensions added twenty to the client. Loading them later would add 0.5 kB to the bundle of `connectJsonRpc`, which has none of them:
  // a dynamic import makes esbuild wrap each module.
  // Texts of streams, links, events by their kind and the cache of cards added five.
  // What is not JSON is found where it is used, the keys of options are checked, and an error names CORS: these and what they
  // import are nine, and the names of fields in gRPC one.
  "files of client": files(129),
  "files of gRPC client": files(151),
  // Extensions added to a handler what checks and declares them. What runs their hooks is loaded with the first call that has one.
  // Large files outside of the store added five: their option, how records name them, and what looks for them. What stores them is later.
  // Many nodes and the queue added nine: who is alive, what others change, and tasks that wait for room. What stores those is later.
  // Rejections are logged by default, and lines about tasks have the same fields: four. Strict base64: one.
  // Who may read the public cards is checked when the handler is made: one file.
  // Questions have forms, options are checked, processes publish what they learn of receivers, outages are counted, and rejected requests
  // have their id: twelve with what they import.
  "files of handler": files(224),
  // The connect() of `@parley/node` loads the client, which reads texts of streams, links, events by their kind and cached cards: four files.
  // Options of serve() and the key of webhooks in development: six with those above.
  "files of serve": files(253),
};
