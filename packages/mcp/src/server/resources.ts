import { hasCode, type Artifact, type Client, type Part, type Task } from "@parley/a2a";
import { isTerminal } from "@parley/a2a/model";
import { line, type Clock } from "@parley/a2a/protocol";
import {
  ResourceNotFoundError,
  type ReadResourceResult,
  type Resource,
  type Server,
} from "@modelcontextprotocol/server";
import type { BridgeDeps, CallerView } from "./agent.ts";
import { Shares } from "./shares.ts";
import { readSkillFile } from "./skill-files.ts";
import { cutBytes } from "./skills.ts";

/* Serves the card, skills, tasks and artifacts as resources, and notifies of changes. */

/** Called with the URI of a changed resource. */
export type Publish = (uri: string) => void;

type Contents = ReadResourceResult["contents"];

/** Adds the resources to a server. `subscribes` tells whether the connection can receive 2025-11-25 notifications. */
export function serveResources(
  server: Server,
  deps: BridgeDeps,
  viewOf: () => Promise<CallerView>,
  watches: Watches,
): void {
  server.setRequestHandler("resources/list", () => ({ resources: listed(deps) }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      { name: "task", title: "A task", uriTemplate: `${deps.base}/tasks/{taskId}`, mimeType: "application/json" },
      {
        name: "artifact",
        title: "A result of a task",
        uriTemplate: `${deps.base}/tasks/{taskId}/artifacts/{artifactId}`,
      },
    ],
  }));
  server.setRequestHandler("resources/read", async ({ params }) => ({
    contents: await read(params.uri, deps, await viewOf(), watches),
  }));
  server.setRequestHandler("resources/subscribe", async ({ params }) => {
    await read(params.uri, deps, await viewOf(), watches);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params }) => {
    watches.end(params.uri);
    return {};
  });
}

function listed({ base, client: { card }, tools }: BridgeDeps): Resource[] {
  const served = new Set(tools.map(({ skill }) => skill));
  const skills = card.skills.filter(({ id }) => served.has(id));
  return [
    { name: "agent-card", title: line(card.name, 100), uri: `${base}/agent-card`, mimeType: "application/json" },
    ...skills.map(({ id, name, description }) => ({
      name: line(id, 100),
      title: line(name, 100),
      description: cutBytes(line(description, 500), 1024),
      uri: `${base}/skills/${encoded(id)}`,
      mimeType: "application/json",
    })),
  ];
}

async function read(uri: string, deps: BridgeDeps, view: CallerView, watches: Watches): Promise<Contents> {
  const { base, client } = deps;
  const skillFile = readSkillFile(uri, deps.skillFiles);
  if (skillFile !== undefined) return skillFile;
  const path = uri.startsWith(`${base}/`) ? uri.slice(base.length + 1) : "";
  const [kind, name = "", below, artifactId, ...others] = path.split("/").map(decoded);
  if (path === "agent-card") return [json(uri, client.card)];
  if (kind === "skills" && below === undefined) {
    const skill = client.card.skills.find(({ id }) => id === name);
    if (skill !== undefined && deps.tools.some((each) => each.skill === name)) return [json(uri, skill)];
  }
  const isArtifact = below === "artifacts" && artifactId !== undefined && others.length === 0;
  if (kind === "tasks" && (below === undefined || isArtifact)) {
    const task = await taskOf(view, name);
    if (task !== undefined) {
      const taskUri = `${base}/tasks/${encodeURIComponent(name)}`;
      watches.begin(view, task, taskUri);
      if (artifactId === undefined) return [json(uri, shown(task, name))];
      const artifact = task.artifacts?.find((each) => each.artifactId === artifactId);
      if (artifact !== undefined) return contentsOf(uri, artifact);
    }
  }
  throw new ResourceNotFoundError(uri);
}

/** Encodes an agent's text for a URI. `encodeURIComponent` alone would throw for lone surrogates. */
export function encoded(text: string): string {
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, "\ufffd"));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

async function taskOf({ client, handles }: CallerView, handle: string): Promise<Task | undefined> {
  const id = await handles.open("task", handle);
  try {
    return id === undefined || id === "" ? undefined : await client.getTask(id);
  } catch (error) {
    if (hasCode(error, "TaskNotFound")) return undefined;
    throw error;
  }
}

/** A task without its content, because its artifacts are separate resources. */
function shown({ status, artifacts = [] }: Task, handle: string): object {
  return {
    taskId: handle,
    status,
    artifacts: artifacts.map(({ artifactId, name, description }) => ({ artifactId, name, description })),
  };
}

function json(uri: string, value: unknown): Contents[number] {
  return { uri, mimeType: "application/json", text: JSON.stringify(value) };
}

function contentsOf(uri: string, { parts }: Artifact): Contents {
  return parts.map((part: Part) => {
    const { mediaType: mimeType } = part;
    if (part.raw !== undefined) return { uri, mimeType: mimeType ?? "application/octet-stream", blob: part.raw };
    if (part.text !== undefined) return { uri, mimeType: mimeType ?? "text/plain", text: part.text };
    if (part.url !== undefined) return { uri, mimeType: "text/uri-list", text: part.url };
    return json(uri, part.data);
  });
}

const maxWatches = 100;

/** Minimum time between notifications for a task, because an agent may change it faster than a client reads. */
const noticeMs = 1000;

/** A reader of a task. */
interface Watcher {
  readonly client: Pick<Client, "watch">;
  readonly owner: string;
}

/** Follows tasks that were read, and notifies of changes. */
export class Watches {
  readonly #publish: Publish;
  readonly #clock: Clock;
  /** Open watches, oldest first. */
  readonly #open = new Map<string, { readonly owner: string; readonly end: () => void }>();

  constructor(publish: Publish, clock: Clock) {
    this.#publish = publish;
    this.#clock = clock;
  }

  begin({ client, owner }: Watcher, task: Task, uri: string): void {
    if (this.#open.has(uri) || isTerminal(task.status.state)) return;
    const watched = client.watch(task);
    let told = task;
    let cancel: (() => void) | undefined;
    const tell = (): void => {
      const { task: now, ended } = watched.getSnapshot();
      if (now !== undefined && now !== told && (cancel === undefined || ended)) {
        told = now;
        this.#publish(uri);
        cancel?.();
        cancel = this.#clock.after(noticeMs, () => {
          cancel = undefined;
          tell();
        });
      }
      if (ended) this.end(uri);
    };
    const stop = watched.subscribe(tell);
    const end = (): void => {
      stop();
      cancel?.();
    };
    this.#open.set(uri, { owner, end });
    if (this.#open.size <= maxWatches) return;
    const all = [...this.#open];
    const shares = new Shares(all.map(([, open]) => open.owner));
    const oldest = all.find(([, open]) => shares.isLargest(open.owner));
    if (oldest !== undefined) this.end(oldest[0]);
  }

  end(uri: string): void {
    const open = this.#open.get(uri);
    this.#open.delete(uri);
    open?.end();
  }

  close(): void {
    for (const uri of this.#open.keys()) this.end(uri);
  }
}
