import type { Socket } from "node:net";

/** What every HTTP/2 connection begins with (RFC 9113 §3.4), made so that no HTTP/1.1 server takes it for a request. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Tells clear-text HTTP/2 from HTTP/1.1 by the first bytes of a connection, and hands it on with all of them still to be
 * read. Most clients send enough at once; some send their bytes one by one. One that leaves the question open for
 * `timeout` milliseconds is closed: no server has it yet that would do so.
 */
export function peek(socket: Socket, timeout: number, decided: (isHttp2: boolean) => void): void {
  let seen: Buffer | undefined;
  const timer = setTimeout(giveUp, timeout);
  socket.on("data", look).on("end", giveUp).on("error", giveUp).on("close", settle);

  function look(chunk: Buffer): void {
    seen = seen === undefined ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, preface.length);
    const isHttp2 = preface.compare(seen, 0, length, 0, length) === 0;
    if (isHttp2 && length < preface.length) return;
    settle();
    // While it flows, what is put back would wait for the bytes after it.
    socket.pause().unshift(seen);
    decided(isHttp2);
  }

  function settle(): void {
    clearTimeout(timer);
    socket.off("data", look).off("end", giveUp).off("error", giveUp).off("close", settle);
  }

  function giveUp(): void {
    settle();
    socket.destroy();
  }
}
