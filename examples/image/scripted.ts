import { setTimeout } from "node:timers/promises";
import type { ImageModel } from "./model.ts";
import { fromPng, toPng, type Color } from "./png.ts";

/*
 * Stands in for a model: it draws sailboats and houses, in one color, on the ocean or on a meadow. The file of an image contains its
 * description.
 */

const colors = new Map<string, Color>([
  ["brown", [121, 85, 72]],
  ["red", [211, 47, 47]],
  ["green", [56, 142, 60]],
  ["yellow", [251, 192, 45]],
  ["white", [245, 245, 245]],
]);
const known = /\b(sailboat|house)\b/i;
const [width, height] = [96, 64];

/** `pause`: the time to draw an image, in milliseconds. */
export const scripted = (pause = 0): ImageModel => ({
  changes: async (message) => /\b(make it|modify|change|paint|instead)\b|涂成|改成/i.test(message),
  async draw({ prompt, base, signal }) {
    await setTimeout(pause, undefined, { signal });
    const before = base && fromPng(base.bytes)?.description;
    const subject = known.exec(before ?? prompt)?.[1]?.toLowerCase();
    if (subject === undefined || (base !== undefined && before === undefined)) return undefined;
    const color = colorIn(prompt) ?? (before && colorIn(before));
    const place = /\b(?:on|in) the \w+/i.exec(before ?? prompt)?.[0] ?? "on the ocean";
    const description = `A generated image of a ${color === undefined ? "" : `${color} `}${subject} ${place}.`;
    const colorAt = subject === "house" ? house(colorOf(color)) : sailboat(colorOf(color));
    const bytes = toPng({ width, height, description, colorAt });
    return { bytes, mediaType: "image/png", name: `${subject}_image.png`, description };
  },
});

const inChinese: Readonly<Record<string, string>> = { brown: "棕", red: "红", green: "绿", yellow: "黄", white: "白" };

function colorIn(text: string): string | undefined {
  return [...colors.keys()].find((name) => new RegExp(`\\b${name}\\b|${inChinese[name]}色`, "i").test(text));
}

const colorOf = (name = "brown"): Color => colors.get(name) ?? [0, 0, 0];

type Painter = (x: number, y: number) => Color;

const sky: Color = [179, 229, 252];

/** A hull that gets narrower below, and a sail that gets wider. */
function sailboat(hull: Color): Painter {
  return (x, y) => {
    if (y >= 44 && y < 54 && x >= 24 + (y - 44) && x < 72 - (y - 44)) return hull;
    if (y >= 10 && y < 42 && x >= 48 && x < 48 + (y - 10) / 1.6) return [255, 255, 255];
    if (y >= 8 && y < 44 && x >= 46 && x < 48) return [93, 64, 55];
    return y < 48 ? sky : [2, 119, 189];
  };
}

/** Four walls and a roof. */
function house(walls: Color): Painter {
  return (x, y) => {
    if (y >= 30 && y < 54 && x >= 30 && x < 66) return walls;
    if (y >= 12 && y < 30 && Math.abs(x - 48) < (y - 12) * 1.3) return [78, 52, 46];
    return y < 48 ? sky : [104, 159, 56];
  };
}
