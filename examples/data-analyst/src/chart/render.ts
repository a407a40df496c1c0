import { Error as ErrorLevel, logger, parse, resetSVGDefIds, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";

/** Draws a chart as SVG text: without a canvas or a browser, the same text for the same chart. */
export async function renderSvg(spec: TopLevelSpec): Promise<string> {
  const quiet = logger(ErrorLevel);
  const view = new View(parse(compile(spec, { logger: quiet }).spec), { renderer: "none", logger: quiet });
  try {
    await view.runAsync();
    // Ids of clip paths count up through the life of the process.
    resetSVGDefIds();
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}
