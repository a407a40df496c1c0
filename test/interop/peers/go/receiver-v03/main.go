// The Go SDK 0.3 reads webhooks: receiver-v03. It writes kind although its structs lack it, so it must ignore unknown fields to
// read its own output.
package main

import (
	"encoding/json"

	"github.com/a2aproject/a2a-go/a2a"

	"parley.test/interop/internal/hook"
)

func main() {
	hook.Receive("X-A2A-Notification-Token", func(body []byte) ([]byte, error) {
		var task a2a.Task
		if err := json.Unmarshal(body, &task); err != nil {
			return nil, err
		}
		return json.Marshal(task)
	})
}
