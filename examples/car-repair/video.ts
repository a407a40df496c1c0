/* Uncompressed AVI files, which need no decoder: 24-bit frames, and 8-bit sound. */

/** A decoded video. */
export interface Film {
  readonly width: number;
  readonly height: number;
  /** The brightness of each frame's pixels, from 0 to 255, row by row from the top. */
  readonly frames: readonly Uint8Array[];
  /** Frames per second. */
  readonly rate: number;
  /** Samples around 128. */
  readonly sound: Uint8Array;
  /** Samples per second. */
  readonly sampleRate: number;
}

/** Encodes a video as a file. */
export function toAvi({ width, height, frames, rate, sound, sampleRate }: Film): Uint8Array<ArrayBuffer> {
  const row = Math.ceil((width * 3) / 4) * 4;
  const pictures = frames.map((frame) => {
    const bytes = new Uint8Array(row * height);
    // Rows are stored from bottom to top, with pixels as blue, green and red.
    for (let y = 0; y < height; y += 1)
      for (let x = 0; x < width; x += 1)
        bytes.fill(frame[y * width + x] ?? 0, (height - 1 - y) * row + x * 3, (height - 1 - y) * row + x * 3 + 3);
    return chunk("00db", bytes);
  });
  const header = ints(
    1e6 / rate,
    row * height * rate,
    0,
    0,
    frames.length,
    0,
    2,
    row * height,
    width,
    height,
    0,
    0,
    0,
    0,
  );
  const bitmap = ints(40, width, height, 1 | (24 << 16), 0, row * height, 0, 0, 0, 0);
  const wave = join(shorts(1, 1), ints(sampleRate, sampleRate), shorts(1, 8));
  const stream = (type: string, perSecond: number, length: number, format: Uint8Array) =>
    list("strl", [
      chunk("strh", join(latin(type), ints(0, 0, 0, 0, 1, perSecond, 0, length, row * height, 0, 0, 0, 0))),
      chunk("strf", format),
    ]);
  const streams = [stream("vids", rate, frames.length, bitmap), stream("auds", sampleRate, sound.length, wave)];
  const content = [
    list("hdrl", [chunk("avih", header), ...streams]),
    list("movi", [...pictures, chunk("01wb", sound)]),
  ];
  return chunk("RIFF", join(latin("AVI "), ...content));
}

/** Decodes a file. `undefined` if it is not an uncompressed AVI file. */
export function fromAvi(bytes: Uint8Array): Film | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (at: number) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 12 || name(0) !== "RIFF" || name(8) !== "AVI ") return undefined;
  let [width, height, rate, sampleRate, kind] = [0, 0, 0, 0, ""];
  const frames: Uint8Array[] = [];
  const sounds: Uint8Array[] = [];
  for (let at = 12; at + 8 <= bytes.length;) {
    const [id, size, start] = [name(at), view.getUint32(at + 4, true), at + 8];
    if (start + size > bytes.length) return undefined;
    if (id === "avih" && size >= 4) rate = Math.round(1e6 / view.getUint32(start, true));
    if (id === "strh" && size >= 4) kind = name(start);
    if (id === "strf" && kind === "vids" && size >= 20) {
      [width, height] = [view.getUint32(start + 4, true), view.getUint32(start + 8, true)];
      if (view.getUint16(start + 14, true) !== 24 || view.getUint32(start + 16, true) !== 0) return undefined;
    }
    if (id === "strf" && kind === "auds" && size >= 16) {
      sampleRate = view.getUint32(start + 4, true);
      if (view.getUint16(start, true) !== 1 || view.getUint16(start + 14, true) !== 8) return undefined;
    }
    const row = Math.ceil((width * 3) / 4) * 4;
    if (id === "00db" && size === row * height) {
      const light = (pixel: number) => {
        const y = height - 1 - Math.floor(pixel / width);
        return bytes[start + y * row + (pixel % width) * 3 + 1] ?? 0;
      };
      frames.push(Uint8Array.from({ length: width * height }, (_, pixel) => light(pixel)));
    }
    if (id === "01wb") sounds.push(bytes.subarray(start, start + size));
    // In a list, the chunks follow its name. Chunks start at even offsets.
    at = id === "LIST" ? start + 4 : start + size + (size % 2);
  }
  // The file is untrusted: it may have no frames, or an absurd rate.
  if (frames.length === 0 || !(rate >= 1 && rate <= 1000)) return undefined;
  return { width, height, frames, rate, sound: join(...sounds), sampleRate };
}

const latin = (text: string) => new Uint8Array(Array.from(text, (letter) => letter.charCodeAt(0)));
const ints = (...values: number[]) => new Uint8Array(Uint32Array.from(values).buffer);
const shorts = (...values: number[]) => new Uint8Array(Uint16Array.from(values).buffer);

function join(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const chunk = (id: string, bytes: Uint8Array) =>
  join(latin(id), ints(bytes.length), bytes, new Uint8Array(bytes.length % 2));
const list = (name: string, chunks: readonly Uint8Array[]) => chunk("LIST", join(latin(name), ...chunks));
