import type { Part } from "@parley/a2a";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AgentEntry } from "../../src/api.ts";
import { Content } from "../parts/content.tsx";
import { Results, State } from "../parts/task.tsx";
import { linkTo } from "../route.ts";
import { Chat, type Entry } from "../talk.ts";

/** The conversations of each agent, for as long as the page is open. */
const chats = new Map<string, Chat[]>();

function chatsOf(agent: AgentEntry): Chat[] {
  const known = chats.get(agent.id) ?? [new Chat(agent)];
  chats.set(agent.id, known);
  return known;
}

/** Conversations with an agent, side by side. */
export function Talk({ agent }: { readonly agent: AgentEntry }) {
  const version = useSignal(0);
  const own = chatsOf(agent);
  const change = (run: () => void): void => {
    run();
    version.value++;
  };
  return (
    <div class="talk" data-version={version.value}>
      {own.map((chat, at) => (
        <Pane
          key={at}
          chat={chat}
          title={own.length === 1 ? agent.card.name : `${agent.card.name} · ${at + 1}`}
          onAdd={() => change(() => own.push(new Chat(agent)))}
          onClose={own.length === 1 ? undefined : () => change(() => own.splice(at, 1))}
        />
      ))}
    </div>
  );
}

interface PaneProps {
  readonly chat: Chat;
  readonly title: string;
  readonly onAdd: () => void;
  readonly onClose: (() => void) | undefined;
}

function Pane({ chat, title, onAdd, onClose }: PaneProps) {
  const end = useRef<HTMLDivElement>(null);
  const entries = chat.entries.value;
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [entries]);
  return (
    <section class="pane" aria-label={title}>
      <header>
        <h1 dir="auto">{title}</h1>
        <button type="button" class="small" onClick={onAdd} title="Another conversation beside this one">
          New
        </button>
        {onClose !== undefined && (
          <button type="button" class="small" onClick={onClose}>
            Close
          </button>
        )}
      </header>
      <div class="entries" role="log" aria-live="polite" tabIndex={0}>
        {entries.length === 0 && <Examples chat={chat} />}
        {entries.map((entry, at) => (
          <EntryView key={at} entry={entry} agent={chat.agent} />
        ))}
        <div ref={end} />
      </div>
      <Composer chat={chat} />
    </section>
  );
}

/** What the card suggests to ask. */
function Examples({ chat }: { readonly chat: Chat }) {
  const { description, skills } = chat.agent.card;
  const examples = skills.flatMap(({ examples = [] }) => examples).slice(0, 4);
  return (
    <div class="examples">
      <p dir="auto">{description}</p>
      {examples.map((text) => (
        <button type="button" key={text} dir="auto" onClick={() => void chat.send([{ text }])}>
          {text}
        </button>
      ))}
    </div>
  );
}

function EntryView({ entry, agent }: { readonly entry: Entry; readonly agent: AgentEntry }) {
  if (entry.kind === "failed") {
    return (
      <p class="problem" role="alert">
        {entry.message}
      </p>
    );
  }
  if (entry.kind === "sent" || entry.kind === "reply") {
    return (
      <article class={entry.kind} dir="auto">
        <Content parts={entry.message.parts} />
      </article>
    );
  }
  const { task, running } = entry;
  return (
    <article class="reply" dir="auto">
      <p>
        <State state={task.status.state} />
        <a class="quiet" href={linkTo({ screen: "tasks", agent: agent.id, item: task.id })}>
          {task.id}
        </a>
      </p>
      <Results task={task} />
      {running && <p class="quiet">…</p>}
    </article>
  );
}

/** Where the user writes. */
function Composer({ chat }: { readonly chat: Chat }) {
  const text = useSignal("");
  const files = useSignal<readonly File[]>([]);
  const busy = chat.busy.value;
  const send = async (): Promise<void> => {
    const parts = [
      ...(text.value === "" ? [] : [{ text: text.value }]),
      ...(await Promise.all(files.value.map(partOf))),
    ];
    if (parts.length === 0 || busy) return;
    text.value = "";
    files.value = [];
    await chat.send(parts);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        files.value = [...files.value, ...(event.dataTransfer?.files ?? [])];
      }}
    >
      {files.value.length > 0 && (
        <ul class="files">
          {files.value.map((file, at) => (
            <li key={at}>
              {file.name}
              <button
                type="button"
                class="small"
                aria-label={`Remove ${file.name}`}
                onClick={() => (files.value = files.value.filter((other) => other !== file))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        rows={2}
        aria-label="Message"
        placeholder="Message"
        dir="auto"
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send();
        }}
      />
      <label class="attach">
        Attach
        <input
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            files.value = [...files.value, ...(currentTarget.files ?? [])];
            currentTarget.value = "";
          }}
        />
      </label>
      {busy ? (
        <button type="button" onClick={() => void chat.cancel()}>
          Cancel
        </button>
      ) : (
        <button type="submit">Send</button>
      )}
    </form>
  );
}

async function partOf(file: File): Promise<Part> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { raw: btoa(binary), filename: file.name, ...(file.type !== "" && { mediaType: file.type }) };
}
