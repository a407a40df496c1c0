import type { IncomingMessage, ServerResponse } from "node:http";

/** Calls `run` once when the peer leaves before its answer is complete; at once when it has left. */
export function onGone(incoming: IncomingMessage, response: ServerResponse, run: () => void): void {
  const { socket } = incoming;
  if (response.destroyed || socket.destroyed) {
    run();
  } else if (response.socket !== null) {
    // Not `once`: it comes once anyway, and each wrapper is two hundred bytes of a stream.
    response.on("close", () => {
      if (!response.writableFinished) run();
    });
  } else {
    // On a pipelined connection an answer that waits behind another one has no socket yet, and hears nothing of its end.
    socket.setMaxListeners(0).once("close", run);
    response.once("finish", () => socket.off("close", run));
  }
}
