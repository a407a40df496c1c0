// The Go SDK 2.x reads webhooks: receiver-v2. Its decoder ignores unknown fields.
package main

import (
	"encoding/json"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley.test/interop/internal/hook"
)

func main() {
	// The header that its own sender uses.
	hook.Receive("A2A-Notification-Token", func(body []byte) ([]byte, error) {
		var event a2a.StreamResponse
		if err := json.Unmarshal(body, &event); err != nil {
			return nil, err
		}
		return json.Marshal(event)
	})
}
