import type { Listen } from "./manager.ts";
import type { Think } from "./mechanic.ts";
import { fromAvi } from "./video.ts";
import { fromChinese, type Seen } from "./words.ts";

/*
 * Stands in for two models. The manager's model looks for “2018 Toyota Camry, XYZ123” or “2018 款丰田凯美瑞,XYZ123”. The first text is the complaint,
 * and the text after the video is its duration.
 */

export const listen: Listen = async ({ text, videos }, known) => {
  const language = known.language ?? (/\p{Script=Han}/u.test(text) ? "zh" : "en");
  const found =
    /\b(?<year>\d{4}) (?<make>[A-Za-z]+) (?<model>\w+), ?(?<id>\w+)/.exec(text) ??
    /(?<year>\d{4}) ?款(?<make>丰田|[A-Za-z]{1,20} )(?<model>凯美瑞|[A-Za-z]\w{0,20})[,，] ?(?<id>\w+)/.exec(text);
  const { year, make = "", model = "", id = "" } = found?.groups ?? {};
  const vehicle =
    year === undefined
      ? known.vehicle
      : { id, year: Number(year), make: fromChinese(make.trim()), model: fromChinese(model) };
  const [video] = videos;
  const seen = video === undefined ? known.seen : watch(video);
  const isComplaint = known.complaint === undefined && /noise|rattl|leak|响|漏/i.test(text);
  const complaint = isComplaint ? text : known.complaint;
  const since = known.seen !== undefined && found === null && text !== "" ? (known.since ?? text) : known.since;
  return {
    language,
    ...(vehicle && { vehicle }),
    ...(complaint !== undefined && { complaint }),
    ...(seen && { seen }),
    ...(since !== undefined && { since }),
  };
};

/** Looks for a growing dark spot in the lower half, and counts the knocks. `undefined` if it finds neither. */
export function watch(video: Uint8Array): Seen | undefined {
  const film = fromAvi(video);
  if (film === undefined) return undefined;
  const { width, height, frames, sound, sampleRate, rate } = film;
  const dark = (frame: Uint8Array | undefined) =>
    (frame ?? new Uint8Array()).subarray(width * Math.floor(height / 2)).filter((light) => light < 50).length;
  const leak = dark(frames.at(-1)) > dark(frames[0]) + (width * height) / 100;
  let [knocks, last] = [0, -Infinity];
  for (const [at, sample] of sound.entries()) {
    if (Math.abs(sample - 128) < 60) continue;
    // Each knock follows a twentieth of a second of silence.
    if (at - last > sampleRate / 20) knocks += 1;
    last = at;
  }
  const seconds = frames.length / rate;
  const perSecond = Math.round(knocks / seconds);
  return leak || perSecond > 0 ? { leak, knocks: perSecond } : undefined;
}

/** The mechanic's model: it scans the car, looks the code up in the manual, raises the car, and reports the manual's advice. */
export const think: Think = async ({ vehicle, complaint, leak, knocks }, done) => {
  const result = (name: string) => done.find((each) => each.name === name)?.result;
  const code = result("scan_vehicle_for_error_codes");
  const procedure = result("get_repair_procedure");
  if (code === undefined) return call("scan_vehicle_for_error_codes", { vehicle_id: vehicle.id });
  if (procedure === undefined) {
    const { make: vehicle_make, model: vehicle_model } = vehicle;
    return call("get_repair_procedure", { error_code: code, vehicle_make, vehicle_model });
  }
  if (result("raise_platform") === undefined) return call("raise_platform", { height_meters: 2 });
  const seen = `${knocks} knocks a second${leak ? ", fluid leaking" : ""}`;
  return { diagnosis: `${complaint} (${seen}). ${code}, ${procedure}`, part: /#\d+/.exec(procedure)?.[0] ?? "" };
};

const call = (name: string, args: Record<string, string | number>) => ({ call: { name, arguments: args } });
