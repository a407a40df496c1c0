import { crc32, deflateSync, inflateSync } from "node:zlib";

/* Small PNG files: 8 bits for each of red, green and blue, with a description (PNG, third edition, §5, §11). */

export type Color = readonly [red: number, green: number, blue: number];

/** An image as its pixels. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly description: string;
  colorAt(x: number, y: number): Color;
}

const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** A PNG file. */
export function toPng({ width, height, description, colorAt }: Pixels): Uint8Array<ArrayBuffer> {
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  // 8 bits, red, green and blue.
  header.setUint16(8, 0x0802);
  const rows = Array.from({ length: height }, (_, y) => [
    0,
    ...Array.from({ length: width }, (__, x) => colorAt(x, y)),
  ]);
  return Uint8Array.from([
    ...signature,
    ...chunk("IHDR", new Uint8Array(header.buffer)),
    ...chunk("tEXt", Buffer.from(`Description\0${description}`, "latin1")),
    ...chunk("IDAT", deflateSync(Uint8Array.from(rows.flat(2)))),
    ...chunk("IEND", new Uint8Array()),
  ]);
}

function chunk(type: string, content: Uint8Array): Uint8Array {
  const named = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const framed = Buffer.alloc(named.length + 8);
  framed.writeUInt32BE(content.length, 0);
  framed.set(named, 4);
  framed.writeUInt32BE(crc32(named), named.length + 4);
  return framed;
}

/** A file that `toPng` has made, or `undefined` for any other. */
export function fromPng(bytes: Uint8Array): Pixels | undefined {
  const file = Buffer.from(bytes);
  if (!file.subarray(0, 8).equals(signature)) return undefined;
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at + 12 <= file.length; at += file.readUInt32BE(at) + 12)
    chunks.set(file.toString("latin1", at + 4, at + 8), file.subarray(at + 8, at + 8 + file.readUInt32BE(at)));
  const [header, said, data] = ["IHDR", "tEXt", "IDAT"].map((type) => chunks.get(type));
  if (header === undefined || said === undefined || data === undefined) return undefined;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(data, { maxOutputLength: 1_000_000 });
  return {
    width,
    height,
    description: said.toString("latin1").split("\0")[1] ?? "",
    colorAt: (x, y) => [...rows.subarray(y * (width * 3 + 1) + x * 3 + 1).subarray(0, 3)] as unknown as Color,
  };
}
