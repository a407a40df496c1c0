import { writeFile } from "node:fs/promises";
import { toAvi } from "./video.ts";

/** What a film of a car shows. */
export interface Scene {
  /** How many times a second something knocks. */
  readonly knocks: number;
  /** Whether a puddle grows below the car. */
  readonly leaks: boolean;
}

/** A film of two seconds, in place of a customer's camera: a car on a road, filmed from the side. */
export function film({ knocks, leaks }: Scene): Uint8Array<ArrayBuffer> {
  const [width, height, rate, sampleRate, seconds] = [48, 32, 5, 8000, 2];
  const frames = Array.from({ length: rate * seconds }, (_, n) =>
    Uint8Array.from({ length: width * height }, (_pixel, at) => {
      const [x, y] = [at % width, Math.floor(at / width)];
      const isPuddle = leaks && y > 26 && Math.abs(x - 16) < n + 2;
      const isCar = y > 10 && y < 20 && x > 6 && x < 42;
      return isPuddle ? 20 : isCar ? 90 : 200;
    }),
  );
  const sound = Uint8Array.from({ length: sampleRate * seconds }, (_, at) => {
    const since = knocks === 0 ? 1e6 : at % Math.round(sampleRate / knocks);
    return 128 + Math.round(110 * Math.exp(-since / 60) * Math.cos(since / 2) + 3 * Math.sin(at / 9));
  });
  return toAvi({ width, height, frames, rate, sound, sampleRate });
}

// npx tsx film.ts FILE
const [, program, path = "noise.avi"] = process.argv;
if (program?.endsWith("film.ts") === true) await writeFile(path, film({ knocks: 5, leaks: true }));
