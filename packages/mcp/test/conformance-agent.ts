import { data, file, text, type Part } from "@parley/a2a";
import type { JsonObject } from "@parley/a2a/model";
import { defineAgent, type Agent } from "@parley/node";

/** The tools that the scenarios of MCP's conformance suite call, as skills of an agent. */
const names = [
  "test_simple_text",
  "test_image_content",
  "test_audio_content",
  "test_embedded_resource",
  "test_multiple_content_types",
  "test_tool_with_progress",
  "test_error_handling",
  "test_elicitation",
  "test_elicitation_sep1034_defaults",
  "test_elicitation_sep1330_enums",
];

const png = file(new Uint8Array([137, 80, 78, 71]), { filename: "red.png", mediaType: "image/png" });
const json = file(new TextEncoder().encode('{"test":"data"}'), { filename: "a.json", mediaType: "application/json" });

const formOf = (properties: JsonObject): readonly Part[] => [
  text("Please provide your information"),
  { ...data({ type: "object", properties }), mediaType: "application/schema+json" },
];

const [one, two] = ["option1", "option2"];
const titled = [
  { const: "value1", title: "First" },
  { const: "value2", title: "Second" },
];

const forms: Readonly<Record<string, readonly Part[]>> = {
  test_elicitation: formOf({ username: { type: "string" }, email: { type: "string", format: "email" } }),
  test_elicitation_sep1034_defaults: formOf({
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  }),
  test_elicitation_sep1330_enums: formOf({
    untitledSingle: { type: "string", enum: [one, two] },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
    untitledMulti: { type: "array", items: { type: "string", enum: [one, two] } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  }),
};

/** The agent under test. Its tasks have a text with 123, and an image. */
export const conforming: Agent = defineAgent({
  name: "Conformance",
  description: "Provides what the scenarios need.",
  version: "1.0.0",
  skills: names.map((id) => ({ id, name: id, description: `For the scenario ${id}`, tags: [] })),
  defaultInputModes: ["text/plain", "application/json"],
  defaultOutputModes: ["*"],
  async *onMessage(turn) {
    const { skillId } = turn.message.metadata ?? {};
    const form = typeof skillId === "string" ? forms[skillId] : undefined;
    const parts: Readonly<Record<string, readonly Part[]>> = {
      test_image_content: [png],
      test_audio_content: [file(new Uint8Array([82]), { filename: "a.wav", mediaType: "audio/wav" })],
      test_embedded_resource: [json],
      test_multiple_content_types: [text("Multiple content types test:"), png, json],
    };
    if (turn.number > 1) yield turn.completed(`Thank you: ${JSON.stringify(turn.message.parts[0]?.data)}`);
    else if (form !== undefined) yield turn.inputRequired(form);
    else if (skillId === "test_error_handling") yield turn.failed("This tool intentionally returns an error");
    else if (skillId === "test_tool_with_progress") {
      for (const done of ["0%", "50%", "100%"]) yield turn.working(done);
      yield turn.completed("Done");
    } else if (typeof skillId === "string" && skillId in parts) {
      yield turn.artifact({ artifactId: "content", parts: parts[skillId] ?? [] });
    } else {
      yield turn.artifact({ artifactId: "123", parts: [text("Data for 123")] });
      yield turn.artifact({ artifactId: "picture", parts: [png] });
      yield turn.completed("This is a simple text response for testing.");
    }
  },
});
