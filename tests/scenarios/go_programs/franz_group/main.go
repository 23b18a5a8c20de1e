// A member of a consumer group by franz-go: a queue and a worker per partition, records are marked and then committed.
//
// While it is ill, either the worker of partition 0 does nothing (sickness=worker), so that the partition is read on
// and never committed, or partition 0 is paused and never resumed (sickness=pause).
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"wirelake/tests/clients/control"
)

func main() {
	client := control.New()
	topic := client.Option("topic")
	options := []kgo.Opt{
		kgo.SeedBrokers(client.Option("bootstrap")),
		kgo.ClientID(client.ID),
		kgo.WithLogger(kgo.BasicLogger(client, kgo.LogLevelWarn, nil)),
		kgo.ConsumerGroup(client.Option("group")),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMinBytes(int32(client.Number("fetch_min_bytes", 1))),
		kgo.FetchMaxWait(client.Duration("max_wait_ms")),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			for _, partition := range assigned[topic] {
				client.Event("assigned", map[string]any{"topic": topic, "partition": partition})
			}
		}),
	}
	switch client.Option("assignor") {
	case "server":
		options = append(options, kgo.ServerSideBalancer())
	default:
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	commitEvery := client.Duration("commit_ms")
	if commitEvery > 0 { // otherwise the library commits what the poll before has given, each 5 s
		options = append(options, kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commitEvery))
	}
	consumer, err := kgo.NewClient(options...)
	control.Must(err)
	paused := map[string][]int32{topic: {0}}
	for client.Context.Err() == nil {
		if client.Option("sickness") == "pause" && client.Ill() {
			consumer.PauseFetchPartitions(paused)
		} else {
			consumer.ResumeFetchPartitions(paused)
		}
		poll, cancel := context.WithTimeout(client.Context, time.Second)
		fetches := consumer.PollFetches(poll)
		cancel()
		fetches.EachError(func(_ string, _ int32, err error) {
			if poll.Err() == nil {
				client.Failed(err)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			if client.Option("sickness") == "worker" && client.Ill() && record.Partition == 0 {
				return
			}
			if commitEvery > 0 {
				consumer.MarkCommitRecords(record)
			}
		})
	}
	consumer.Close()
	client.Event("closed", nil)
}
