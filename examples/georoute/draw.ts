import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { initWasm, Resvg } from "@resvg/resvg-wasm";
import { encode } from "jpeg-js";
import type { Place, Route } from "./roads.ts";

/** What is drawn. */
export interface Drawing {
  readonly name: string;
  readonly points: readonly Place[];
  readonly route: Route | undefined;
  /** Of points and routes, such as `#cc0000`. */
  readonly color?: string;
}

const [width, height, margin] = [480, 360, 36];

/** The drawing as GeoJSON (RFC 7946): a line for the route, and a point for each place. Positions begin with the longitude. */
export function geoJson({ points, route }: Drawing) {
  const position = ({ lat, lng }: Place) => [lng, lat];
  const line = route && {
    type: "Feature",
    properties: { roads: route.roads, minutes: route.minutes },
    geometry: { type: "LineString", coordinates: route.places.map(position) },
  };
  const marks = [...points, ...(route?.places ?? [])].map((place) => ({
    type: "Feature",
    properties: { name: place.name },
    geometry: { type: "Point", coordinates: position(place) },
  }));
  return { type: "FeatureCollection", features: [...(line === undefined ? [] : [line]), ...marks] };
}

/** The names come from a stranger. */
const escape = (text: string) => text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);

function svg({ points, route, color = "#1565c0" }: Drawing): string {
  const all = [...points, ...(route?.places ?? [])];
  const [west, east] = [Math.min(...all.map(({ lng }) => lng)), Math.max(...all.map(({ lng }) => lng))];
  const [south, north] = [Math.min(...all.map(({ lat }) => lat)), Math.max(...all.map(({ lat }) => lat))];
  const x = ({ lng }: Place) => margin + ((lng - west) / (east - west || 1)) * (width - 2 * margin);
  const y = ({ lat }: Place) => height - margin - ((lat - south) / (north - south || 1)) * (height - 2 * margin);
  const at = (place: Place) => `${x(place).toFixed(1)},${y(place).toFixed(1)}`;
  const line = `<polyline points="${(route?.places ?? []).map(at).join(" ")}" fill="none" stroke="${color}" stroke-width="4"/>`;
  const marks = all.map((place) => {
    const [cx, cy] = at(place).split(",");
    return `<circle cx="${cx}" cy="${cy}" r="6" fill="${color}"><title>${escape(place.name)}</title></circle>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="${width}" height="${height}" fill="#eef3ea"/>${line}${marks.join("")}</svg>`;
}

/** The drawing as a page without scripts: the names of the points show where the pointer is. */
export function html(drawing: Drawing): string {
  const { route } = drawing;
  const says = route === undefined ? "" : `<p>${route.minutes} minutes: ${route.roads.map(escape).join(", ")}</p>`;
  const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`;
  return `<!doctype html><html lang="en"><meta charset="utf-8">${policy}<title>Map</title>${svg(drawing)}${says}</html>`;
}

const renderer = createRequire(import.meta.url).resolve("@resvg/resvg-wasm/index_bg.wasm");
// A process that loads this module again, such as one of tests, has it already, and is refused.
await initWasm(readFileSync(renderer)).catch(() => undefined);

/** The drawing as an image. */
export function picture(drawing: Drawing, format: "png" | "jpeg"): Uint8Array {
  const image = new Resvg(svg(drawing)).render();
  return format === "png" ? image.asPng() : encode({ data: image.pixels, width, height }, 90).data;
}
