// Package lines writes the reports of a peer: a line of JSON for each step, with its result or error.
package lines

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

type line struct {
	Step   string `json:"step"`
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
	Text   string `json:"text,omitempty"`
}

func write(said line) {
	text, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

// Say reports a result.
func Say(step string, result any) {
	write(line{Step: step, Result: result})
}

// Fail reports an error by name.
func Fail(step, name string, err error) {
	write(line{Step: step, Error: name, Text: err.Error()})
}

// Namer returns the protocol's name for an error.
type Namer func(error) string

// Step runs a step and reports its outcome.
func (name Namer) Step(step string, run func(context.Context) (any, error)) {
	name.within(20*time.Second, step, run)
}

// Alone runs a step that takes minutes, only on request.
func (name Namer) Alone(step string, run func(context.Context) (any, error)) {
	name.within(4*time.Minute, step, run)
}

func (name Namer) within(limit time.Duration, step string, run func(context.Context) (any, error)) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	result, err := run(ctx)
	if err != nil {
		Fail(step, name(err), err)
		return
	}
	Say(step, result)
}

// State is the name of a state, whatever the version calls it.
func State[T ~string](state T) string {
	name := strings.TrimPrefix(strings.ToUpper(string(state)), "TASK_STATE_")
	return strings.ReplaceAll(name, "-", "_")
}

// EndWithParent ends the process when its standard input is closed.
func EndWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
