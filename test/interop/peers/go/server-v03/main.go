// The Go SDK 0.3 as a server: server-v03. It supports JSON-RPC and gRPC; the SDK has no REST.
package main

import (
	"context"
	"encoding/base64"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2agrpc"
	"github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/a2asrv/eventqueue"
	"github.com/a2aproject/a2a-go/a2asrv/push"
	"google.golang.org/grpc"

	"parley.test/interop/internal/lines"
)

type agent struct{}

func status(at *a2asrv.RequestContext, state a2a.TaskState, words string, final bool) *a2a.TaskStatusUpdateEvent {
	var message *a2a.Message
	if words != "" {
		message = a2a.NewMessageForTask(a2a.MessageRoleAgent, at, a2a.TextPart{Text: words})
	}
	event := a2a.NewStatusUpdateEvent(at, state, message)
	event.Final = final
	return event
}

func sizeOf(part a2a.Part) string {
	file, _ := part.(a2a.FilePart)
	content, _ := file.File.(a2a.FileBytes)
	raw, err := base64.StdEncoding.DecodeString(content.Bytes)
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(len(raw))
}

func (agent) Execute(ctx context.Context, at *a2asrv.RequestContext, queue eventqueue.Queue) error {
	first, _ := at.Message.Parts[0].(a2a.TextPart)
	if first.Text == "message" {
		return queue.Write(ctx, a2a.NewMessage(a2a.MessageRoleAgent, a2a.TextPart{Text: "direct"}))
	}
	if first.Text == "bytes" {
		return queue.Write(ctx, a2a.NewMessage(a2a.MessageRoleAgent, a2a.TextPart{Text: sizeOf(at.Message.Parts[1])}))
	}
	if at.StoredTask == nil {
		if err := queue.Write(ctx, a2a.NewSubmittedTask(at, at.Message)); err != nil {
			return err
		}
	}
	if first.Text == "ask" {
		return queue.Write(ctx, status(at, a2a.TaskStateInputRequired, "more", true))
	}
	if err := queue.Write(ctx, status(at, a2a.TaskStateWorking, "", false)); err != nil {
		return err
	}
	artifact := []a2a.Part{first}
	switch first.Text {
	case "fail":
		return queue.Write(ctx, status(at, a2a.TaskStateFailed, "failed", true))
	case "hold":
		<-ctx.Done()
		return nil
	case "parts":
		artifact = at.Message.Parts[1:]
	}
	if err := queue.Write(ctx, a2a.NewArtifactEvent(at, artifact...)); err != nil {
		return err
	}
	return queue.Write(ctx, status(at, a2a.TaskStateCompleted, "", true))
}

func (agent) Cancel(ctx context.Context, at *a2asrv.RequestContext, queue eventqueue.Queue) error {
	return queue.Write(ctx, status(at, a2a.TaskStateCanceled, "", true))
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
	withPush := slices.Contains(os.Args, "push")
	modes := []string{"text/plain", "application/json", "application/octet-stream"}
	card := &a2a.AgentCard{
		Name:               "Go 0.3",
		Description:        "Does what it is told",
		Version:            "1.0.0",
		ProtocolVersion:    "0.3.0",
		URL:                base + "/rpc",
		PreferredTransport: a2a.TransportProtocolJSONRPC,
		AdditionalInterfaces: []a2a.AgentInterface{
			{URL: base + "/rpc", Transport: a2a.TransportProtocolJSONRPC},
			{URL: target, Transport: a2a.TransportProtocolGRPC},
		},
		DefaultInputModes:                 modes,
		DefaultOutputModes:                modes,
		Capabilities:                      a2a.AgentCapabilities{Streaming: true, PushNotifications: withPush},
		Skills:                            []a2a.AgentSkill{{ID: "echo", Name: "Echo", Description: "Says it again", Tags: []string{"echo"}}},
		SupportsAuthenticatedExtendedCard: true,
	}
	extended := *card
	extended.Description = "For anyone"
	options := []a2asrv.RequestHandlerOption{a2asrv.WithExtendedAgentCard(&extended)}
	if withPush {
		sender := push.NewHTTPPushSender(nil)
		options = append(options, a2asrv.WithPushNotifications(push.NewInMemoryStore(), sender))
	}
	handler := a2asrv.NewHandler(agent{}, options...)

	server := grpc.NewServer()
	a2agrpc.NewHandler(handler).RegisterWith(server)
	go func() { log.Fatal(server.Serve(rpc)) }()

	mux := http.NewServeMux()
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	go func() { log.Fatal(http.Serve(web, mux)) }()

	lines.Say("ready", base)
	lines.EndWithParent()
}
