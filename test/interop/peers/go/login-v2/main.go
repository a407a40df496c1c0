// The Go SDK 2.x as a client that logs in: login-v2 BINDING VERSION (URL SCHEME CREDENTIAL)...
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	grpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"

	"parley.test/interop/internal/lines"
	"parley.test/interop/internal/reach"
)

const session = a2aclient.SessionID("session")

func ask(ctx context.Context, card *a2a.AgentCard, scheme, credential string) (any, error) {
	store := a2aclient.NewInMemoryCredentialsStore()
	if credential != "" {
		store.Set(session, a2a.SecuritySchemeName(scheme), a2aclient.AuthCredential(credential))
	}
	dial := reach.Dial()
	client, err := a2aclient.NewFromCard(ctx, card,
		a2aclient.WithCallInterceptors(&a2aclient.AuthInterceptor{Service: store}),
		grpcv1.WithGRPCTransport(dial), grpcv0.WithGRPCTransport(dial),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{}), a2av0.WithRESTTransport(a2av0.RESTTransportConfig{}))
	if err != nil {
		return nil, err
	}
	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("who"))
	result, err := client.SendMessage(a2aclient.AttachSessionID(ctx, session), &a2a.SendMessageRequest{Message: message})
	if err != nil {
		return nil, err
	}
	answer, ok := result.(*a2a.Message)
	if !ok {
		return nil, fmt.Errorf("the answer is a %T", result)
	}
	var all strings.Builder
	for _, part := range answer.Parts {
		all.WriteString(part.Text())
	}
	return all.String(), nil
}

// at is the interface of the server's binding.
func at(url, binding, version string) *a2a.AgentInterface {
	if binding == "GRPC" {
		url = strings.TrimPrefix(url, "http://")
	}
	return &a2a.AgentInterface{
		URL:             url,
		ProtocolBinding: a2a.TransportProtocol(binding),
		ProtocolVersion: a2a.ProtocolVersion(version),
	}
}

func main() {
	binding, version := os.Args[1], os.Args[2]
	name := lines.Namer(func(error) string { return "refused" })
	resolver := agentcard.NewResolver(nil)
	resolver.CardParser = a2av0.NewAgentCardParser()
	for args := os.Args[3:]; len(args) >= 3; args = args[3:] {
		url, scheme, right := args[0], args[1], args[2]
		if _, err := resolver.Resolve(context.Background(), url); err != nil {
			lines.Fail(scheme+" card", "unreadable", err)
		}
		// The 0.3 card has requirements in another format.
		card, err := resolver.Resolve(context.Background(), url, agentcard.WithRequestHeader("A2A-Version", "0.3"))
		if err != nil {
			log.Fatal(err)
		}
		card.SupportedInterfaces = []*a2a.AgentInterface{at(url, binding, version)}
		for _, step := range []struct{ name, credential string }{{"none", ""}, {"wrong", "wrong"}, {"right", right}} {
			name.Step(scheme+" "+step.name, func(ctx context.Context) (any, error) {
				return ask(ctx, card, scheme, step.credential)
			})
		}
	}
}
