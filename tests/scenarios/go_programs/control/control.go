// Package control connects a client program with its scenario: options as name=value, words on standard input
// ("ill", "well", "stop"), and events as lines of JSON on standard output.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Client is what the scenario asked for, and whether it is ill at the moment.
type Client struct {
	ID      string
	Context context.Context
	options map[string]string
	ill     atomic.Bool
	out     sync.Mutex
}

// New reads the options; the context ends with "stop" or the end of standard input.
func New() *Client {
	options := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(argument, "=")
		options[name] = value
	}
	ctx, cancel := context.WithCancel(context.Background())
	client := &Client{ID: options["client_id"], Context: ctx, options: options}
	go func() {
		defer cancel()
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			switch lines.Text() {
			case "ill":
				client.ill.Store(true)
			case "well":
				client.ill.Store(false)
			case "stop":
				return
			}
		}
	}()
	return client
}

// Ill tells whether the client is to misbehave.
func (c *Client) Ill() bool { return c.ill.Load() }

// Option is the value of an option, empty if it is not given.
func (c *Client) Option(name string) string { return c.options[name] }

// Number is an option that is one, otherwise if it is not given.
func (c *Client) Number(name string, otherwise int) int {
	if number, err := strconv.Atoi(c.options[name]); err == nil {
		return number
	}
	return otherwise
}

// Duration is an option in milliseconds, 0 if it is not given.
func (c *Client) Duration(name string) time.Duration {
	return time.Duration(c.Number(name, 0)) * time.Millisecond
}

// Event reports one event.
func (c *Client) Event(kind string, fields map[string]any) {
	event := map[string]any{"ts_ms": time.Now().UnixMilli(), "client_id": c.ID, "kind": kind}
	for name, value := range fields {
		event[name] = value
	}
	line, _ := json.Marshal(event)
	c.out.Lock()
	defer c.out.Unlock()
	fmt.Println(string(line))
}

// Failed reports an error.
func (c *Client) Failed(err error) { c.Event("error", map[string]any{"error": err.Error()}) }

// Log reports what the library logs, a line or more at a time.
func (c *Client) Log(text string) {
	for line := range strings.Lines(text) {
		c.Event("log", map[string]any{"text": strings.TrimSpace(line)})
	}
}

// Write makes a client the output of a logger.
func (c *Client) Write(text []byte) (int, error) {
	c.Log(string(text))
	return len(text), nil
}

// Must ends the program if err is one.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
