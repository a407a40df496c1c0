// The Go SDK 0.3 as a client: client-v03 URL BINDING VERSION [STEP].
package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"strings"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"

	"parley.test/interop/internal/lines"
	"parley.test/interop/internal/reach"
)

var named = []struct {
	err  error
	name string
}{
	{a2a.ErrTaskNotFound, "TaskNotFound"},
	{a2a.ErrTaskNotCancelable, "TaskNotCancelable"},
	{a2a.ErrPushNotificationNotSupported, "PushNotificationNotSupported"},
	{a2a.ErrUnsupportedOperation, "UnsupportedOperation"},
	{a2a.ErrUnsupportedContentType, "ContentTypeNotSupported"},
	{a2a.ErrInvalidParams, "InvalidParams"},
	{a2a.ErrInvalidRequest, "InvalidRequest"},
	{a2a.ErrMethodNotFound, "MethodNotFound"},
	{a2a.ErrInternalError, "Internal"},
}

func nameOf(err error) string {
	for _, each := range named {
		if errors.Is(err, each.err) {
			return each.name
		}
	}
	return "other"
}

func texts(parts []a2a.Part) string {
	var all strings.Builder
	for _, part := range parts {
		if text, ok := part.(a2a.TextPart); ok {
			all.WriteString(text.Text)
		}
	}
	return all.String()
}

func words(messages []*a2a.Message) []string {
	all := []string{}
	for _, message := range messages {
		all = append(all, texts(message.Parts))
	}
	return all
}

func glance(event any) string {
	switch it := event.(type) {
	case *a2a.Task:
		return "task " + lines.State(it.Status.State)
	case *a2a.TaskStatusUpdateEvent:
		if it.Final {
			return "status " + lines.State(it.Status.State) + ", final"
		}
		return "status " + lines.State(it.Status.State)
	case *a2a.TaskArtifactUpdateEvent:
		return "artifact " + texts(it.Artifact.Parts)
	case *a2a.Message:
		return "message " + texts(it.Parts)
	}
	return fmt.Sprintf("%T", event)
}

func request(words string, parts ...a2a.Part) *a2a.MessageSendParams {
	all := append([]a2a.Part{a2a.TextPart{Text: words}}, parts...)
	// Over gRPC, omitting it means not to wait.
	blocking := true
	return &a2a.MessageSendParams{
		Config:  &a2a.MessageSendConfig{Blocking: &blocking},
		Message: a2a.NewMessage(a2a.MessageRoleUser, all...),
	}
}

type events = iter.Seq2[a2a.Event, error]

func all(stream events) ([]string, error) {
	seen := []string{}
	for event, err := range stream {
		if err != nil {
			return nil, err
		}
		seen = append(seen, glance(event))
	}
	return seen, nil
}

type peer struct {
	*a2aclient.Client
	card *a2a.AgentCard
}

func (p peer) task(ctx context.Context, request *a2a.MessageSendParams) (*a2a.Task, error) {
	sent, err := p.SendMessage(ctx, request)
	if err != nil {
		return nil, err
	}
	task, ok := sent.(*a2a.Task)
	if !ok {
		return nil, fmt.Errorf("%T is not a task", sent)
	}
	return task, nil
}

// hold streams a held task, and calls once when it works.
func (p peer) hold(ctx context.Context, once func(a2a.TaskID) error) ([]string, error) {
	return p.working(ctx, "hold", once)
}

func (p peer) working(ctx context.Context, words string, once func(a2a.TaskID) error) ([]string, error) {
	rest := []string{}
	called := false
	for event, err := range p.SendStreamingMessage(ctx, request(words)) {
		if err != nil {
			return nil, err
		}
		if called {
			rest = append(rest, glance(event))
			continue
		}
		if strings.HasSuffix(glance(event), " WORKING") {
			called = true
			if err := once(event.TaskInfo().TaskID); err != nil {
				return nil, err
			}
		}
	}
	return rest, nil
}

func (p peer) sendAndWait(ctx context.Context) (any, error) {
	task, err := p.task(ctx, request("echo hello"))
	if err != nil {
		return nil, err
	}
	artifacts := []string{}
	for _, artifact := range task.Artifacts {
		artifacts = append(artifacts, texts(artifact.Parts))
	}
	return map[string]any{"state": lines.State(task.Status.State), "artifacts": artifacts}, nil
}

func (p peer) sendAndGo(ctx context.Context) (any, error) {
	now := request("hold")
	blocking := false
	now.Config = &a2a.MessageSendConfig{Blocking: &blocking}
	task, err := p.task(ctx, now)
	if err != nil {
		return nil, err
	}
	_, err = p.CancelTask(ctx, &a2a.TaskIDParams{ID: task.ID})
	return lines.State(task.Status.State), err
}

func (p peer) reply(ctx context.Context) (any, error) {
	sent, err := p.SendMessage(ctx, request("message"))
	return []string{glance(sent)}, err
}

func (p peer) failure(ctx context.Context) (any, error) {
	task, err := p.task(ctx, request("fail"))
	if err != nil {
		return nil, err
	}
	return []string{lines.State(task.Status.State), texts(task.Status.Message.Parts)}, nil
}

func (p peer) question(ctx context.Context) (any, error) {
	asked, err := p.task(ctx, request("ask"))
	if err != nil {
		return nil, err
	}
	more := request("echo it")
	more.Message.TaskID, more.Message.ContextID = asked.ID, asked.ContextID
	answered, err := p.task(ctx, more)
	if err != nil {
		return nil, err
	}
	task, err := p.GetTask(ctx, &a2a.TaskQueryParams{ID: asked.ID})
	if err != nil {
		return nil, err
	}
	one := 1
	short, err := p.GetTask(ctx, &a2a.TaskQueryParams{ID: asked.ID, HistoryLength: &one})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"states":  []string{lines.State(asked.Status.State), lines.State(answered.Status.State)},
		"same":    asked.ID == answered.ID,
		"history": words(task.History),
		"short":   words(short.History),
	}, nil
}

func (p peer) cancel(ctx context.Context) (any, error) {
	var state string
	rest, err := p.hold(ctx, func(id a2a.TaskID) error {
		task, err := p.CancelTask(ctx, &a2a.TaskIDParams{ID: id})
		if err != nil {
			return err
		}
		state = lines.State(task.Status.State)
		return nil
	})
	return map[string]any{"state": state, "rest": rest}, err
}

func (p peer) subscribe(ctx context.Context) (any, error) {
	first, rest := "", []string{}
	other, err := p.hold(ctx, func(id a2a.TaskID) error {
		for event, err := range p.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: id}) {
			if err != nil {
				return err
			}
			if first != "" {
				rest = append(rest, glance(event))
				continue
			}
			first = glance(event)
			if _, err := p.CancelTask(ctx, &a2a.TaskIDParams{ID: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return map[string]any{"first": first, "rest": rest, "other": other}, err
}

func file(content a2a.FilePartContent) a2a.FilePart {
	return a2a.FilePart{File: content}
}

func (p peer) parts(ctx context.Context) (any, error) {
	raw := file(a2a.FileBytes{Bytes: "AAH+/w==", FileMeta: a2a.FileMeta{Name: "a.bin", MimeType: "application/octet-stream"}})
	url := file(a2a.FileURI{URI: "https://example.com/a.txt", FileMeta: a2a.FileMeta{Name: "a.txt", MimeType: "text/plain"}})
	data := a2a.DataPart{Data: map[string]any{"list": []any{1.5, true, nil, "é"}, "deep": map[string]any{"": map[string]any{}}}}
	task, err := p.task(ctx, request("parts", raw, url, data))
	if err != nil {
		return nil, err
	}
	return task.Artifacts[0].Parts, nil
}

func (p peer) bytesOfFile(ctx context.Context) (any, error) {
	sent, err := p.SendMessage(ctx, request("bytes", file(a2a.FileBytes{Bytes: "AAH+/w==", FileMeta: a2a.FileMeta{MimeType: "text/plain"}})))
	return []string{glance(sent)}, err
}

func (p peer) extendedCard(ctx context.Context) (any, error) {
	card, err := p.GetAgentCard(ctx)
	if err != nil {
		return nil, err
	}
	return card.Description, nil
}

// afterwards runs a call on a finished task.
func (p peer) afterwards(run func(context.Context, a2a.TaskID) (any, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		task, err := p.task(ctx, request("echo"))
		if err != nil {
			return nil, fmt.Errorf("no task: %v", err)
		}
		return run(ctx, task.ID)
	}
}

func to(id a2a.TaskID) *a2a.MessageSendParams {
	sent := request("echo")
	sent.Message.TaskID = id
	return sent
}

// quiet reads a task that is silent for a while with two readers.
func (p peer) quiet(ctx context.Context) (any, error) {
	first, rest := "", []string{}
	ended := make(chan error, 1)
	other, err := p.working(ctx, "quiet", func(id a2a.TaskID) error {
		go func() {
			for event, err := range p.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: id}) {
				if err != nil {
					ended <- err
					return
				}
				if first != "" {
					rest = append(rest, glance(event))
					continue
				}
				first = glance(event)
				lines.Say("listening", nil)
			}
			ended <- nil
		}()
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = <-ended
	return map[string]any{"first": first, "rest": rest, "other": other}, err
}

func (p peer) run() {
	step := lines.Namer(nameOf).Step
	stream := func(words string) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) { return all(p.SendStreamingMessage(ctx, request(words))) }
	}
	step("card", func(context.Context) (any, error) {
		skills := []string{}
		for _, skill := range p.card.Skills {
			skills = append(skills, skill.ID)
		}
		return map[string]any{"name": p.card.Name, "skills": skills}, nil
	})
	step("send-and-wait", p.sendAndWait)
	step("send-and-go", p.sendAndGo)
	step("reply", p.reply)
	step("failure", p.failure)
	step("stream", stream("echo hello"))
	step("stream-reply", stream("message"))
	step("question", p.question)
	step("question-streamed", stream("ask"))
	step("cancel", p.cancel)
	step("subscribe", p.subscribe)
	step("parts", p.parts)
	step("bytes-of-file", p.bytesOfFile)
	step("extended-card", p.extendedCard)

	step("get-unknown", func(ctx context.Context) (any, error) {
		return p.GetTask(ctx, &a2a.TaskQueryParams{ID: "nobody"})
	})
	step("cancel-unknown", func(ctx context.Context) (any, error) {
		return p.CancelTask(ctx, &a2a.TaskIDParams{ID: "nobody"})
	})
	step("subscribe-unknown", func(ctx context.Context) (any, error) {
		return all(p.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: "nobody"}))
	})
	step("send-to-unknown", func(ctx context.Context) (any, error) {
		return p.SendMessage(ctx, to("nobody"))
	})
	step("stream-to-unknown", func(ctx context.Context) (any, error) {
		return all(p.SendStreamingMessage(ctx, to("nobody")))
	})
	step("cancel-finished", p.afterwards(func(ctx context.Context, id a2a.TaskID) (any, error) {
		return p.CancelTask(ctx, &a2a.TaskIDParams{ID: id})
	}))
	step("send-to-finished", p.afterwards(func(ctx context.Context, id a2a.TaskID) (any, error) {
		return p.SendMessage(ctx, to(id))
	}))
	step("subscribe-to-finished", p.afterwards(func(ctx context.Context, id a2a.TaskID) (any, error) {
		return all(p.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: id}))
	}))
	step("wrong-context", func(ctx context.Context) (any, error) {
		asked, err := p.task(ctx, request("ask"))
		if err != nil {
			return nil, err
		}
		sent := to(asked.ID)
		sent.Message.ContextID = "another"
		return p.SendMessage(ctx, sent)
	})
	step("media-type", func(ctx context.Context) (any, error) {
		return p.SendMessage(ctx, request("echo", file(a2a.FileURI{URI: "https://example.com/a.mp4", FileMeta: a2a.FileMeta{MimeType: "video/mp4"}})))
	})
	step("push-create", func(ctx context.Context) (any, error) {
		return p.SetTaskPushConfig(ctx, &a2a.TaskPushConfig{TaskID: "t", Config: a2a.PushConfig{ID: "c", URL: "https://example.com/hook"}})
	})
	step("push-get", func(ctx context.Context) (any, error) {
		return p.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigParams{TaskID: "t", ConfigID: "c"})
	})
	step("push-list", func(ctx context.Context) (any, error) {
		return p.ListTaskPushConfig(ctx, &a2a.ListTaskPushConfigParams{TaskID: "t"})
	})
	step("push-delete", func(ctx context.Context) (any, error) {
		return nil, p.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigParams{TaskID: "t", ConfigID: "c"})
	})
}

func main() {
	ctx := context.Background()
	url, binding := os.Args[1], os.Args[2]
	dial := reach.Dial()
	card, err := agentcard.DefaultResolver.Resolve(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	wanted := a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{a2a.TransportProtocol(binding)}}
	client, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithConfig(wanted), a2aclient.WithGRPCTransport(dial))
	if err != nil {
		log.Fatal(err)
	}
	p := peer{client, card}
	if len(os.Args) > 4 {
		lines.Namer(nameOf).Alone("quiet", p.quiet)
		return
	}
	p.run()
}
