import type { Listen } from "./manager.ts";
import type { Think } from "./mechanic.ts";

/* In place of two models: the one of the manager looks for “a 2018 Toyota Camry, XYZ123,” and takes the rest as it comes. */

export const listen: Listen = async ({ text, pictures }, known) => {
  const [, year, make = "", model = "", id = ""] = /\b(\d{4}) (\w+) (\w+), (\w+)/.exec(text) ?? [];
  const job = year === undefined ? known.job : { vehicle: { id, year: Number(year), make, model }, complaint: text };
  if (pictures.length > 0) return { ...known, seen: "some fluid leaking" };
  const since = known.seen !== undefined && known.job !== undefined ? text : undefined;
  return { ...known, ...(job !== undefined && { job }), ...(since !== undefined && { since }) };
};

/** The mechanic's: it scans, reads the manual about what it found, raises the car, and believes the manual. */
export const think: Think = async ({ vehicle, complaint }, done) => {
  const result = (name: string) => done.find((each) => each.name === name)?.result;
  const code = result("scan_vehicle_for_error_codes");
  const procedure = result("get_repair_procedure");
  if (code === undefined) return call("scan_vehicle_for_error_codes", { vehicle_id: vehicle.id });
  if (procedure === undefined) {
    const { make: vehicle_make, model: vehicle_model } = vehicle;
    return call("get_repair_procedure", { error_code: code, vehicle_make, vehicle_model });
  }
  if (result("raise_platform") === undefined) return call("raise_platform", { height_meters: 2 });
  return { diagnosis: `${complaint}. ${code}, ${procedure}`, part: /#\d+/.exec(procedure)?.[0] ?? "" };
};

const call = (name: string, args: Record<string, string | number>) => ({ call: { name, arguments: args } });
