import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { PeerCertificate, RequestFacts } from "@parley/a2a/protocol";

/** What a connection of Node tells of the client. Each fact is looked up when it is asked for. */
export class ConnectionFacts implements RequestFacts {
  readonly #socket: Socket | undefined;
  readonly #user: (() => unknown) | undefined;

  /** `user`: the user that a framework has found. */
  constructor(socket: Socket | undefined, user: (() => unknown) | undefined) {
    this.#socket = socket;
    this.#user = user;
  }

  get remoteAddress(): string | undefined {
    return this.#socket?.remoteAddress;
  }

  get certificate(): PeerCertificate | undefined {
    return this.#socket === undefined ? undefined : certificateOf(this.#socket);
  }

  get user(): unknown {
    return this.#user?.();
  }
}

function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!isTls(socket)) return undefined;
  // Node gives an empty object where there is none, and null once the connection is closed.
  const shown = socket.getPeerCertificate() as Partial<ReturnType<TLSSocket["getPeerCertificate"]>> | null;
  if (!shown?.raw || !shown.fingerprint256) return undefined;
  return {
    authorized: socket.authorized,
    der: new Uint8Array(shown.raw),
    fingerprint: shown.fingerprint256.replaceAll(":", "").toLowerCase(),
    subject: { ...(shown.subject as PeerCertificate["subject"]) },
    names: namesIn(shown.subjectaltname),
  };
}

function isTls(socket: Socket): socket is TLSSocket {
  // Read, since the socket of an HTTP/2 session stands behind a proxy that does not answer `in`.
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** Node writes them as `DNS:a, URI:"b, c"`: a name with a comma or a quote in it stands in quotes, as JSON text. */
function namesIn(list = ""): readonly string[] {
  return [...list.matchAll(/(?:, )?([^:,]+:)("(?:[^"\\]|\\.)*"|[^,]*)/gy)].map(([, kind = "", name = ""]) =>
    name.startsWith('"') ? kind + (JSON.parse(name) as string) : kind + name,
  );
}
