// A member of a consumer group by kafka-go: it fetches messages and commits what its workers have done.
//
// While it is ill, the worker of partition 0 does nothing, so that the partition is read on and never committed.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"wirelake/tests/clients/control"
)

func main() {
	client := control.New()
	commitEvery := client.Duration("commit_ms")
	config := kafka.ReaderConfig{
		Brokers:     []string{client.Option("bootstrap")},
		GroupID:     client.Option("group"),
		GroupTopics: []string{client.Option("topic")},
		Dialer:      &kafka.Dialer{ClientID: client.ID, Timeout: 10 * time.Second},
		MinBytes:    client.Number("fetch_min_bytes", 1),
		MaxBytes:    10_000_000,
		MaxWait:     client.Duration("max_wait_ms"),
		StartOffset: kafka.FirstOffset,
		ErrorLogger: kafka.LoggerFunc(func(text string, values ...any) { client.Log(fmt.Sprintf(text, values...)) }),
	}
	if client.Option("by_library") == "true" {
		config.CommitInterval = commitEvery
	}
	reader := kafka.NewReader(config)
	newest := map[int]kafka.Message{}
	commit := func(ctx context.Context) {
		batch := make([]kafka.Message, 0, len(newest))
		for _, message := range newest {
			batch = append(batch, message)
		}
		clear(newest)
		if len(batch) > 0 {
			if err := reader.CommitMessages(ctx, batch...); err != nil {
				client.Failed(err)
			}
		}
	}
	due := time.Now().Add(commitEvery)
	for client.Context.Err() == nil {
		wait, cancel := context.WithTimeout(client.Context, 500*time.Millisecond)
		message, err := reader.FetchMessage(wait)
		timed := wait.Err() != nil
		cancel()
		if err != nil && !timed {
			client.Failed(err)
		}
		if err == nil && !(message.Partition == 0 && client.Ill()) {
			newest[message.Partition] = message
		}
		if config.CommitInterval > 0 || time.Now().After(due) {
			commit(client.Context)
			due = time.Now().Add(commitEvery)
		}
	}
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	commit(last)
	cancel()
	control.Must(reader.Close())
	client.Event("closed", nil)
}
