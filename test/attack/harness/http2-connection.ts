import { Connection } from "./connection.ts";

/** Writes HTTP/2 frames directly (RFC 9113), so that each byte of a body can be a separate frame. */

const frame = { data: 0, headers: 1, settings: 4, ping: 6, windowUpdate: 8 };
const endStream = 1;
const endHeaders = 4;
const ack = 1;
const headLength = 9;

export class Http2Connection {
  readonly #connection: Connection;
  /** The flow-control windows of the connection and of each stream. */
  #window = 65_535;
  #initial = 65_535;
  readonly #windows = new Map<number, number>();
  #received: Buffer = Buffer.alloc(0);
  /** Streams that the other side has ended or reset. */
  readonly #ended = new Set<number>();
  #next = 1;

  private constructor(connection: Connection) {
    this.#connection = connection;
    connection.socket.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  static async to(port: number): Promise<Http2Connection> {
    const connection = await Connection.to(port);
    await connection.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    const self = new Http2Connection(connection);
    await connection.send(frameOf(frame.settings, 0, 0, Buffer.alloc(0)));
    await connection.until(() => self.#settled);
    return self;
  }

  #settled = false;

  get over(): boolean {
    return this.#connection.over;
  }

  /** Starts a `POST`. Returns the number of its stream. */
  async open(path: string, headers: Readonly<Record<string, string>>): Promise<number> {
    const stream = this.#next;
    this.#next += 2;
    this.#windows.set(stream, this.#initial);
    const all = { ":method": "POST", ":scheme": "http", ":authority": "127.0.0.1", ":path": path, ...headers };
    const block = Buffer.concat(Object.entries(all).map(([name, value]) => literal(name, value)));
    await this.#connection.send(frameOf(frame.headers, endHeaders, stream, block));
    return stream;
  }

  /** Sends bytes of a body, one in each frame, as far as the window allows. Returns the number of sent bytes. */
  async pieces(stream: number, count: number, first: Uint8Array = Buffer.alloc(0)): Promise<number> {
    if (first.length > 0) {
      this.#take(stream, first.length);
      await this.#connection.send(frameOf(frame.data, 0, stream, first));
    }
    const piece = frameOf(frame.data, 0, stream, Buffer.from(" "));
    const many = Buffer.alloc(piece.length * 4096, piece);
    let sent = 0;
    while (sent < count && !this.over && !this.#ended.has(stream)) {
      const open = Math.min(this.#window, this.#windows.get(stream) ?? 0, count - sent, 4096);
      if (open > 0) {
        this.#take(stream, open);
        sent += open;
        await this.#connection.send(many.subarray(0, open * piece.length));
      } else {
        await this.#connection.until(
          () => this.#ended.has(stream) || Math.min(this.#window, this.#windows.get(stream) ?? 0) > 0,
        );
      }
    }
    return sent;
  }

  close(): void {
    this.#connection.close();
  }

  #take(stream: number, bytes: number): void {
    this.#window -= bytes;
    this.#windows.set(stream, (this.#windows.get(stream) ?? 0) - bytes);
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= headLength) {
      const end = headLength + this.#received.readUIntBE(0, 3);
      if (this.#received.length < end) break;
      this.#hear(this.#received.subarray(0, end));
      this.#received = this.#received.subarray(end);
    }
    this.#connection.wake();
  }

  #hear(bytes: Buffer): void {
    const [type, flags] = [bytes[3], bytes[4] ?? 0];
    const stream = bytes.readUInt32BE(5) & 0x7fff_ffff;
    const payload = bytes.subarray(headLength);
    if (type === frame.settings && (flags & ack) === 0) {
      for (let at = 0; at < payload.length; at += 6) {
        if (payload.readUInt16BE(at) === 4) this.#initial = payload.readUInt32BE(at + 2);
      }
      this.#settled = true;
      void this.#connection.send(frameOf(frame.settings, ack, 0, Buffer.alloc(0)));
    }
    if (type === frame.ping && (flags & ack) === 0) {
      void this.#connection.send(frameOf(frame.ping, ack, 0, payload));
    }
    if (type === frame.windowUpdate) {
      const more = payload.readUInt32BE(0);
      if (stream === 0) this.#window += more;
      else this.#windows.set(stream, (this.#windows.get(stream) ?? 0) + more);
    }
    const isLast = (type === frame.data || type === frame.headers) && (flags & endStream) !== 0;
    if (isLast || type === 3) this.#ended.add(stream);
    // After a GOAWAY the peer accepts no new streams.
    if (type === 7) this.close();
  }
}

function frameOf(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(headLength);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes a header that does not enter the dynamic table (RFC 7541 §6.2.2). Names and values must be shorter than 127 bytes. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}
