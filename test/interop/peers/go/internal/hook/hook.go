// Package hook receives webhooks for any SDK. It reports each body, and the SDK's parsed value, serialized again by the SDK.
package hook

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"parley.test/interop/internal/lines"
)

type about struct {
	Body string          `json:"body"`
	Type string          `json:"type"`
	Read json.RawMessage `json:"read"`
}

// Receive listens until its parent ends. The header must have the token, which is the first argument of the program.
// read parses and serializes a body.
func Receive(header string, read func([]byte) ([]byte, error)) {
	token := []byte(os.Args[1])
	hook := func(response http.ResponseWriter, request *http.Request) {
		if subtle.ConstantTimeCompare([]byte(request.Header.Get(header)), token) != 1 {
			lines.Say("refused", nil)
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			log.Fatal(err)
		}
		written, err := read(body)
		if err != nil {
			lines.Fail("webhook", "unread", err)
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		lines.Say("webhook", about{string(body), request.Header.Get("Content-Type"), written})
		response.WriteHeader(http.StatusNoContent)
	}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", hook)
	go func() { log.Fatal(http.Serve(web, mux)) }()
	lines.Say("ready", "http://"+web.Addr().String()+"/hook")
	lines.EndWithParent()
}
