// The Timestamp extension, implemented like the Go sample, on the SDK 2.x.
//
//	timestamp-v2 serve SECONDS: an agent that stamps its output and its input.
//	timestamp-v2 call URL SECONDS: a client that stamps its messages.
//
// SECONDS is the time of the clock, since the Unix epoch.
package main

import (
	"context"
	"iter"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"parley.test/interop/internal/lines"
)

const (
	path = "github.com/a2aproject/a2a-samples/extensions/timestamp/v1"
	uri  = "https://" + path
	key  = path + "/timestamp"
)

var extension = a2a.AgentExtension{URI: uri, Description: "Adds timestamps to messages and artifacts."}

// clock is the value of a stamp.
type clock string

func clockOf(seconds string) clock {
	since, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return clock(time.Unix(since, 0).UTC().Format(time.RFC3339Nano))
}

func (c clock) stamp(things ...a2a.MetadataCarrier) {
	for _, thing := range things {
		if _, has := thing.Meta()[key]; !has {
			thing.SetMeta(key, string(c))
		}
	}
}

// saidIn returns the agent's messages and artifacts in an event.
func saidIn(event a2a.Event) []a2a.MetadataCarrier {
	said := []a2a.MetadataCarrier{}
	add := func(message *a2a.Message) {
		if message != nil {
			said = append(said, message)
		}
	}
	switch it := event.(type) {
	case *a2a.Message:
		add(it)
	case *a2a.TaskStatusUpdateEvent:
		add(it.Status.Message)
	case *a2a.TaskArtifactUpdateEvent:
		said = append(said, it.Artifact)
	case *a2a.Task:
		for _, artifact := range it.Artifacts {
			said = append(said, artifact)
		}
		for _, message := range it.History {
			if message.Role == a2a.MessageRoleAgent {
				add(message)
			}
		}
		add(it.Status.Message)
	}
	return said
}

func requested(ctx context.Context) bool {
	asked, ok := a2asrv.ExtensionsFrom(ctx)
	return ok && asked.Requested(&extension)
}

// Intercept stamps the received message, unlike the samples in other languages.
func (c clock) Intercept(ctx context.Context, at *a2asrv.ExecutorContext) (context.Context, error) {
	if requested(ctx) && at.Message != nil {
		c.stamp(at.Message)
	}
	return ctx, nil
}

// agent reports the stamp of the message, and stamps its answer on request.
type agent struct{ clock }

func (a agent) Execute(ctx context.Context, at *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		say := func(event a2a.Event) bool {
			if requested(ctx) {
				a.stamp(saidIn(event)...)
			}
			return yield(event, nil)
		}
		status := func(state a2a.TaskState, words string) bool {
			message := a2a.NewMessageForTask(a2a.MessageRoleAgent, at, a2a.NewTextPart(words))
			return say(a2a.NewStatusUpdateEvent(at, state, message))
		}
		heard, _ := at.Message.Meta()[key].(string)
		if at.StoredTask == nil && !say(a2a.NewSubmittedTask(at, at.Message)) {
			return
		}
		if !status(a2a.TaskStateWorking, "working") || !say(a2a.NewArtifactEvent(at, a2a.NewTextPart(heard))) {
			return
		}
		status(a2a.TaskStateCompleted, "done")
	}
}

func (agent) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

func serve(now clock) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	card := &a2a.AgentCard{
		Name:                "Go stamps",
		Description:         "Stamps what it says",
		Version:             "1.0.0",
		DefaultInputModes:   []string{"text/plain"},
		DefaultOutputModes:  []string{"text/plain"},
		Capabilities:        a2a.AgentCapabilities{Streaming: true, Extensions: []a2a.AgentExtension{extension}},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(base+"/invoke", a2a.TransportProtocolJSONRPC)},
	}
	handler := a2asrv.NewHandler(agent{now}, a2asrv.WithExecutorContextInterceptor(now))
	mux := http.NewServeMux()
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	go func() { log.Fatal(http.Serve(listener, mux)) }()
	lines.Say("ready", base)
	lines.EndWithParent()
}

// stamping is the interceptor of the client.
type stamping struct {
	a2aclient.PassthroughInterceptor
	clock
}

func (s stamping) Before(ctx context.Context, call *a2aclient.Request) (context.Context, any, error) {
	request, sends := call.Payload.(*a2a.SendMessageRequest)
	if !sends || !declares(call.Card) {
		return ctx, nil, nil
	}
	s.stamp(request.Message)
	if call.ServiceParams == nil {
		call.ServiceParams = a2aclient.ServiceParams{}
	}
	call.ServiceParams.Append(a2a.SvcParamExtensions, uri)
	return ctx, nil, nil
}

func declares(card *a2a.AgentCard) bool {
	for _, each := range card.Capabilities.Extensions {
		if each.URI == uri {
			return true
		}
	}
	return false
}

// stamps returns the stamps of a streamed answer, in the order of its events.
func stamps(ctx context.Context, url string, now clock) (any, error) {
	card, err := agentcard.DefaultResolver.Resolve(ctx, url)
	if err != nil {
		return nil, err
	}
	client, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithCallInterceptors(stamping{clock: now}))
	if err != nil {
		return nil, err
	}
	found, texts := []any{}, []string{}
	request := &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("hi"))}
	for event, err := range client.SendStreamingMessage(ctx, request) {
		if err != nil {
			return nil, err
		}
		if _, isTask := event.(*a2a.Task); isTask {
			continue
		}
		for _, thing := range saidIn(event) {
			found = append(found, thing.Meta()[key])
			switch it := thing.(type) {
			case *a2a.Message:
				texts = append(texts, it.Parts[0].Text())
			case *a2a.Artifact:
				texts = append(texts, it.Parts[0].Text())
			}
		}
	}
	return map[string]any{"stamps": found, "texts": texts}, nil
}

func main() {
	if os.Args[1] == "serve" {
		serve(clockOf(os.Args[2]))
		return
	}
	name := lines.Namer(func(error) string { return "other" })
	name.Step("stamps", func(ctx context.Context) (any, error) { return stamps(ctx, os.Args[2], clockOf(os.Args[3])) })
}
