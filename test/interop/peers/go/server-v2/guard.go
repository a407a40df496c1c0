package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A guarded server requires both a token and an API key, as its card declares.

const (
	token = "Bearer token-of-a-peer"
	key   = "key-of-a-peer"
)

func guardCard(card *a2a.AgentCard) {
	card.SecuritySchemes = a2a.NamedSecuritySchemes{
		"bearer": a2a.HTTPAuthSecurityScheme{Scheme: "Bearer"},
		"key":    a2a.APIKeySecurityScheme{Location: a2a.APIKeySecuritySchemeLocationHeader, Name: "X-API-Key"},
	}
	card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"bearer": {}, "key": {}}}
}

// guarded wraps a handler to reject unauthenticated requests. The card is public.
func guarded(next http.Handler, isGuarded bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := r.Header.Get("Authorization") == token && r.Header.Get("X-API-Key") == key
		if isGuarded && !known && !strings.HasPrefix(r.URL.Path, "/.well-known/") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func grpcGuards(isGuarded bool) []grpc.ServerOption {
	if !isGuarded {
		return nil
	}
	check := func(ctx context.Context) error {
		given, _ := metadata.FromIncomingContext(ctx)
		if strings.Join(given.Get("authorization"), "") == token && strings.Join(given.Get("x-api-key"), "") == key {
			return nil
		}
		return status.Error(codes.Unauthenticated, "Who are you?")
	}
	return []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return next(ctx, request)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := check(stream.Context()); err != nil {
				return err
			}
			return next(server, stream)
		}),
	}
}
