// The Go SDK 2.x as a server: server-v2. It supports 1.0 and 0.3, each over JSON-RPC, REST and gRPC.
package main

import (
	"context"
	"iter"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/push"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"google.golang.org/grpc"

	"parley.test/interop/internal/lines"
)

type agent struct{}

func (agent) Execute(ctx context.Context, at *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		words := at.Message.Parts[0].Text()
		if words == "message" {
			yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("direct")), nil)
			return
		}
		if words == "bytes" {
			size := strconv.Itoa(len(at.Message.Parts[1].Raw()))
			yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(size)), nil)
			return
		}
		say := func(state a2a.TaskState, words string) bool {
			var message *a2a.Message
			if words != "" {
				message = a2a.NewMessageForTask(a2a.MessageRoleAgent, at, a2a.NewTextPart(words))
			}
			return yield(a2a.NewStatusUpdateEvent(at, state, message), nil)
		}
		if at.StoredTask == nil && !yield(a2a.NewSubmittedTask(at, at.Message), nil) {
			return
		}
		if words == "ask" {
			say(a2a.TaskStateInputRequired, "more")
			return
		}
		if !say(a2a.TaskStateWorking, "") {
			return
		}
		artifact := []*a2a.Part{a2a.NewTextPart(words)}
		switch words {
		case "fail":
			say(a2a.TaskStateFailed, "failed")
			return
		case "hold":
			<-ctx.Done()
			return
		case "parts":
			artifact = at.Message.Parts[1:]
		case "traceparent":
			artifact = []*a2a.Part{a2a.NewTextPart(traceparent(ctx))}
		}
		if yield(a2a.NewArtifactEvent(at, artifact...), nil) {
			say(a2a.TaskStateCompleted, "")
		}
	}
}

// traceparent returns the request's header, as the SDK passes it to agents.
func traceparent(ctx context.Context) string {
	if call, ok := a2asrv.CallContextFrom(ctx); ok {
		if values, _ := call.ServiceParams().Get("traceparent"); len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

func (agent) Cancel(_ context.Context, at *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(at, a2a.TaskStateCanceled, nil), nil)
	}
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func main() {
	web, rpc := listen(), listen()
	base, target := "http://"+web.Addr().String(), rpc.Addr().String()
	at := func(url string, binding a2a.TransportProtocol, version a2a.ProtocolVersion) *a2a.AgentInterface {
		return &a2a.AgentInterface{URL: url, ProtocolBinding: binding, ProtocolVersion: version}
	}
	withPush, isGuarded := slices.Contains(os.Args, "push"), slices.Contains(os.Args, "guarded")
	modes := []string{"text/plain", "application/json", "application/octet-stream"}
	card := &a2a.AgentCard{
		Name:               "Go 2",
		Description:        "Does what it is told",
		Version:            "1.0.0",
		DefaultInputModes:  modes,
		DefaultOutputModes: modes,
		Capabilities:       a2a.AgentCapabilities{Streaming: true, ExtendedAgentCard: true, PushNotifications: withPush},
		Skills:             []a2a.AgentSkill{{ID: "echo", Name: "Echo", Description: "Says it again", Tags: []string{"echo"}}},
		SupportedInterfaces: []*a2a.AgentInterface{
			at(base+"/1.0/rpc", a2a.TransportProtocolJSONRPC, "1.0"),
			at(base+"/1.0/rest", a2a.TransportProtocolHTTPJSON, "1.0"),
			at(target, a2a.TransportProtocolGRPC, "1.0"),
			at(base+"/0.3/rpc", a2a.TransportProtocolJSONRPC, "0.3"),
			at(base+"/0.3/rest", a2a.TransportProtocolHTTPJSON, "0.3"),
			at(target, a2a.TransportProtocolGRPC, "0.3"),
		},
	}
	if isGuarded {
		guardCard(card)
	}
	extended := *card
	extended.Description = "For anyone"
	store := taskstore.NewInMemory(&taskstore.InMemoryStoreConfig{
		Authenticator: func(context.Context) (string, error) { return "anyone", nil },
	})
	options := []a2asrv.RequestHandlerOption{
		a2asrv.WithCapabilityChecks(&card.Capabilities),
		a2asrv.WithExtendedAgentCard(&extended),
		a2asrv.WithTaskStore(store),
	}
	if withPush {
		sender := push.NewHTTPPushSender(nil)
		options = append(options, a2asrv.WithPushNotifications(push.NewInMemoryStore(), sender))
	}
	handler := a2asrv.NewHandler(agent{}, options...)

	server := grpc.NewServer(grpcGuards(isGuarded)...)
	grpcv1.NewHandler(handler).RegisterWith(server)
	grpcv0.NewHandler(handler).RegisterWith(server)
	go func() { log.Fatal(server.Serve(rpc)) }()

	mux := http.NewServeMux()
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card)))
	mux.Handle("/1.0/rpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/1.0/rest/", http.StripPrefix("/1.0/rest", a2asrv.NewRESTHandler(handler)))
	mux.Handle("/0.3/rpc", a2av0.NewJSONRPCHandler(handler))
	mux.Handle("/0.3/rest/", http.StripPrefix("/0.3/rest", a2av0.NewRESTHandler(handler)))
	go func() { log.Fatal(http.Serve(web, guarded(mux, isGuarded))) }()

	lines.Say("ready", base)
	lines.EndWithParent()
}
