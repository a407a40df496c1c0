import type { Part } from "@parley/a2a";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AgentEntry } from "../../src/api.ts";
import { chatLists, chatsOf, closeChat, newChat } from "../chats.ts";
import { Content } from "../parts/content.tsx";
import { Results, State } from "../parts/task.tsx";
import { lazily } from "../lazy.tsx";
import { linkTo } from "../route.ts";
import { readOnly, type SavedChat } from "../saved.ts";
import type { Chat, Entry } from "../talk.ts";

const Answer = lazily(async () => (await import("../parts/answer.tsx")).Answer);

/** Conversations with an agent, side by side. */
export function Talk({ agent }: { readonly agent: AgentEntry }) {
  if (readOnly.value !== undefined) return <Saved agent={agent} chats={readOnly.value.chats} />;
  const own = chatLists.value < 0 ? [] : chatsOf(agent);
  return (
    <div class="talk">
      {own.map((chat, at) => (
        <Pane
          key={at}
          chat={chat}
          title={own.length === 1 ? agent.card.name : `${agent.card.name} · ${at + 1}`}
          onAdd={() => newChat(agent)}
          onClose={own.length === 1 ? undefined : () => closeChat(chat)}
        />
      ))}
    </div>
  );
}

/** The conversations of an opened file. */
function Saved({ agent, chats }: { readonly agent: AgentEntry; readonly chats: readonly SavedChat[] }) {
  const own = chats.filter((chat) => chat.agent === agent.id);
  return (
    <div class="talk">
      {own.length === 0 && <p class="quiet empty">Nothing was said to this agent.</p>}
      {own.map(({ entries }, at) => (
        <section key={at} class="pane" aria-label={`${agent.card.name} · ${at + 1}`}>
          <header>
            <h1 dir="auto">{agent.card.name}</h1>
          </header>
          <div class="entries" tabIndex={0}>
            {entries.map((entry, n) => (
              <EntryView key={n} entry={entry} agent={agent} chat={undefined} />
            ))}
          </div>
        </section>
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
          <EntryView key={at} entry={entry} agent={chat.agent} chat={at === entries.length - 1 ? chat : undefined} />
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

interface EntryProps {
  readonly entry: Entry;
  readonly agent: AgentEntry;
  /** Answers what the entry asks. `undefined`: it is not the last one. */
  readonly chat: Chat | undefined;
}

function EntryView({ entry, agent, chat }: EntryProps) {
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
      {chat !== undefined && task.status.state.endsWith("_REQUIRED") && (
        <Answer withText={false} task={task} onAnswer={(parts) => chat.answer(task, parts)} />
      )}
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
