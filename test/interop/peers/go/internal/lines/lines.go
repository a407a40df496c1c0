// Package lines is what the peers say: a line of JSON for each step, with its result or its error.
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

// Say tells a result.
func Say(step string, result any) {
	write(line{Step: step, Result: result})
}

// Fail tells an error, by that name.
func Fail(step, name string, err error) {
	write(line{Step: step, Error: name, Text: err.Error()})
}

// Namer names an error, in the words of the protocol.
type Namer func(error) string

// Step runs a step and tells what came of it.
func (name Namer) Step(step string, run func(context.Context) (any, error)) {
	name.within(20*time.Second, step, run)
}

// Alone runs a step of minutes, which is run where it is asked for.
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
