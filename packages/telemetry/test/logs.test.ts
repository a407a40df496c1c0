import { expect, test } from "vitest";
import { LinesLogger } from "../../a2a/test/transport/support.ts";
import { tracedLogger, type LogRecord } from "../src/index.ts";
import { registered, Spans } from "./support.ts";

registered();

test("a line names the active span, if any", () => {
  const lines = new LinesLogger();
  const logger = tracedLogger(lines);
  const { provider } = new Spans();
  const ids = provider.getTracer("test").startActiveSpan("outer", (span) => {
    logger.warn("Within", { taskId: "t" });
    span.end();
    return span.spanContext();
  });
  logger.warn("Outside", { taskId: "t" });
  expect(lines.lines).toEqual([
    expect.objectContaining({ message: "Within" }),
    expect.objectContaining({ message: "Outside" }),
  ]);
  const { traceId, spanId } = ids;
  expect(lines.lines[0]).toMatchObject({
    fields: { trace_id: traceId, span_id: spanId, trace_flags: "01", taskId: "t" },
  });
  expect(lines.lines[1]).toMatchObject({ fields: { taskId: "t" } });
  expect(JSON.stringify(lines.lines[1])).not.toContain("trace_id");
});

test("a line is a record of OpenTelemetry too, with the cause of an error; a provider that throws changes nothing", () => {
  const records: LogRecord[] = [];
  const emit = (record: LogRecord): void => {
    records.push(record);
    if (records.length > 1) throw new Error("no collector");
  };
  const lines = new LinesLogger();
  const logger = tracedLogger(lines, { loggerProvider: { getLogger: () => ({ emit }) } });
  logger.error("A task failed", { cause: new TypeError("broken"), taskId: "t", data: { n: 1 } });
  logger.warn("Still here");
  expect(records[0]).toMatchObject({
    severityNumber: 17,
    severityText: "ERROR",
    body: "A task failed",
    attributes: { "exception.type": "TypeError", "exception.message": "broken", taskId: "t", data: '{"n":1}' },
  });
  expect(lines.lines.map(({ message }) => message)).toEqual(["A task failed", "Still here"]);
});
