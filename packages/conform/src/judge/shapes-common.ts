import { flag, nonEmpty, object, optional, optionalList, required, requiredList, text, type Shape } from "./shape.ts";

// Shapes that the versions share. `prefix` stands before the names of all shapes of a version.

export function artifactShape(prefix: string): Shape {
  return {
    fields: {
      artifactId: required(nonEmpty),
      name: optional(text),
      description: optional(text),
      parts: requiredList(`${prefix}Part`),
      metadata: optional(object),
      extensions: optionalList(text),
    },
  };
}

export function artifactUpdateFields(prefix: string): Shape["fields"] {
  return {
    taskId: required(nonEmpty),
    contextId: required(nonEmpty),
    artifact: required(`${prefix}Artifact`),
    append: optional(flag),
    lastChunk: optional(flag),
    metadata: optional(object),
  };
}

/** The shapes that are the same in the proto of 1.0 and in that of 0.3. */
export function protoShapes(prefix: string): Readonly<Record<string, Shape>> {
  return {
    [`${prefix}Artifact`]: artifactShape(prefix),
    [`${prefix}TaskArtifactUpdateEvent`]: { fields: artifactUpdateFields(prefix) },
    [`${prefix}SendMessageResponse`]: {
      fields: { task: optional(`${prefix}Task`), message: optional(`${prefix}Message`) },
      oneOf: ["task", "message"],
    },
    [`${prefix}StreamResponse`]: {
      fields: {
        task: optional(`${prefix}Task`),
        message: optional(`${prefix}Message`),
        statusUpdate: optional(`${prefix}TaskStatusUpdateEvent`),
        artifactUpdate: optional(`${prefix}TaskArtifactUpdateEvent`),
      },
      oneOf: ["task", "message", "statusUpdate", "artifactUpdate"],
    },
  };
}
