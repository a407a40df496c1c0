import type { Part } from "@parley/a2a";
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AgentEntry } from "../../src/api.ts";
import { chatLists, chatsOf, closeChat, newChat } from "../chats.ts";
import { Content } from "../parts/content.tsx";
import { Results, State } from "../parts/task.tsx";
import { lazily } from "../lazy.tsx";
import { go, linkTo, type Route } from "../route.ts";
import { readOnly, type SavedChat } from "../saved.ts";
import { agents } from "../server.ts";
import type { Chat, Entry } from "../talk.ts";

const Answer = lazily(async () => (await import("../parts/answer.tsx")).Answer);

interface TalkProps {
  readonly agent: AgentEntry;
  /** A second agent, shown in separate columns. */
  readonly beside: AgentEntry | undefined;
}

/** Conversations with one agent or two, side by side. */
export function Talk({ agent, beside }: TalkProps) {
  const isToBoth = useSignal(false);
  const both = beside === undefined ? [agent] : [agent, beside];
  if (readOnly.value !== undefined) return <Saved agents={both} chats={readOnly.value.chats} />;
  const alone: Route = { screen: "talk", agent: agent.id };
  return (
    <div class={beside === undefined ? "talk" : "talk two"}>
      {both.map((one) => {
        const own = chatLists.value < 0 ? [] : chatsOf(one);
        const other = both.find(({ id }) => id !== one.id);
        return own.map((chat, at) => (
          <Pane
            key={`${one.id} ${at}`}
            chat={chat}
            agent={one}
            title={own.length === 1 ? one.card.name : `${one.card.name} · ${at + 1}`}
            other={other}
            isToBoth={isToBoth}
            hasChoice={one === agent && at === 0 && agents.value.length > 1}
            onAdd={() => newChat(one)}
            onClose={own.length > 1 ? () => closeChat(chat) : one === beside ? () => go(alone) : undefined}
          />
        ));
      })}
    </div>
  );
}

/** The conversations of an opened file. */
function Saved({ agents, chats }: { readonly agents: readonly AgentEntry[]; readonly chats: readonly SavedChat[] }) {
  const shown = agents.flatMap((agent) =>
    chats.filter((chat) => chat.agent === agent.id).map((chat, at) => ({ ...chat, agent, at })),
  );
  return (
    <div class={agents.length === 1 ? "talk" : "talk two"}>
      {shown.length === 0 && <p class="quiet empty">No messages with this agent.</p>}
      {shown.map(({ agent, entries, at }) => (
        <section key={`${agent.id} ${at}`} class="pane" aria-label={`${agent.card.name} · ${at + 1}`}>
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
  readonly agent: AgentEntry;
  readonly title: string;
  /** The agent of the other columns. */
  readonly other: AgentEntry | undefined;
  /** Whether the pane also sends messages to the other agent. */
  readonly isToBoth: Signal<boolean>;
  /** Whether this pane has the menu that selects the second agent. */
  readonly hasChoice: boolean;
  readonly onAdd: () => void;
  readonly onClose: (() => void) | undefined;
}

function Pane({ chat, agent, title, other, isToBoth, hasChoice, onAdd, onClose }: PaneProps) {
  const end = useRef<HTMLDivElement>(null);
  const entries = chat.entries.value;
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [entries]);
  const { signIn } = agent;
  return (
    <section class="pane" aria-label={title} data-agent={agent.id}>
      <header>
        <h1 dir="auto">{title}</h1>
        {hasChoice && <Beside agent={agent} other={other} />}
        <button type="button" class="small" onClick={onAdd} title="Opens another conversation beside this one">
          New
        </button>
        {onClose !== undefined && (
          <button type="button" class="small" onClick={onClose}>
            Close
          </button>
        )}
      </header>
      {signIn?.isRequired === true && signIn.logins.length === 0 && (
        <p class="notice">
          This agent requires credentials. <SignInLink agent={agent} />
        </p>
      )}
      <div class="entries" role="log" aria-live="polite" tabIndex={0}>
        {entries.length === 0 && <Examples chat={chat} />}
        {entries.map((entry, at) => (
          <EntryView key={at} entry={entry} agent={agent} chat={at === entries.length - 1 ? chat : undefined} />
        ))}
        <div ref={end} />
      </div>
      <Composer chat={chat} other={other} isToBoth={isToBoth} />
    </section>
  );
}

/** Selects the agent of the other columns. */
function Beside({ agent, other }: Pick<PaneProps, "agent" | "other">) {
  return (
    <select
      class="small"
      aria-label="Agent beside this one"
      value={other?.id ?? ""}
      onChange={({ currentTarget: { value } }) =>
        go({ screen: "talk", agent: agent.id, ...(value !== "" && { beside: value }) })
      }
    >
      <option value="">no other agent</option>
      {agents.value
        .filter(({ id }) => id !== agent.id)
        .map(({ id, card }) => (
          <option key={id} value={id}>
            beside {card.name}
          </option>
        ))}
    </select>
  );
}

function SignInLink({ agent: { id } }: { readonly agent: AgentEntry }) {
  return <a href={linkTo({ screen: "sign-in", agent: id })}>Sign in</a>;
}

/** Example prompts from the card. */
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
  /** The conversation, to answer the entry's question. `undefined`: the entry is not the last one. */
  readonly chat: Chat | undefined;
}

function EntryView({ entry, agent, chat }: EntryProps) {
  if (entry.kind === "failed") {
    return (
      <p class="problem" role="alert">
        {entry.message} {entry.code === "Unauthenticated" && agent.signIn !== undefined && <SignInLink agent={agent} />}
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

/** The message form. */
function Composer({ chat, other, isToBoth }: Pick<PaneProps, "chat" | "other" | "isToBoth">) {
  const text = useSignal("");
  const files = useSignal<readonly File[]>([]);
  const busy = chat.busy.value;
  const second = other !== undefined && isToBoth.value ? chatsOf(other).at(-1) : undefined;
  const isWaiting = second?.busy.value === true;
  const send = async (): Promise<void> => {
    const parts = [
      ...(text.value === "" ? [] : [{ text: text.value }]),
      ...(await Promise.all(files.value.map(partOf))),
    ];
    if (parts.length === 0 || busy || isWaiting) return;
    text.value = "";
    files.value = [];
    await Promise.all([chat.send(parts), second?.send(parts)]);
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
        <button type="submit" disabled={isWaiting}>
          {second === undefined ? "Send" : "Send to both"}
        </button>
      )}
      {other !== undefined && (
        <label class="both">
          <input
            type="checkbox"
            checked={isToBoth.value}
            onChange={({ currentTarget }) => (isToBoth.value = currentTarget.checked)}
          />
          Also send to {other.card.name}
        </label>
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
