// A member of a consumer group by sarama: workers per partition collect batches, mark and commit by hand.
//
// While it is ill, a worker that exists already keeps the session with which it was started. After a rebalance sarama
// drops what such a worker marks, without an error: its partition is read on and never committed.
package main

import (
	"context"
	"errors"
	"log"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"wirelake/tests/clients/control"
)

// worker holds the newest record of a partition, and the session in which it is marked.
type worker struct {
	session sarama.ConsumerGroupSession
	newest  *sarama.ConsumerMessage
}

type batches struct {
	client  *control.Client
	lock    sync.Mutex
	workers map[int32]*worker
	current sarama.ConsumerGroupSession
}

func (b *batches) Setup(session sarama.ConsumerGroupSession) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.current = session
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			b.client.Event("assigned", map[string]any{"topic": topic, "partition": partition})
			if one := b.workers[partition]; one == nil || !b.client.Ill() {
				b.workers[partition] = &worker{session: session}
			}
		}
	}
	return nil
}

func (b *batches) Cleanup(sarama.ConsumerGroupSession) error {
	b.commit()
	return nil
}

func (b *batches) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			b.lock.Lock()
			b.workers[claim.Partition()].newest = message
			b.lock.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

// commit ends the batch of each worker. It waits for the broker behind what is fetched, while the claims go on.
func (b *batches) commit() {
	if current := b.mark(); current != nil && b.client.Duration("commit_ms") > 0 {
		current.Commit()
	}
}

func (b *batches) mark() sarama.ConsumerGroupSession {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.client.Option("commits") == "never" || b.current == nil {
		return nil
	}
	for partition, one := range b.workers {
		if !b.client.Ill() && one.session != b.current {
			if !owns(b.current, partition) {
				delete(b.workers, partition)
				continue
			}
			one.session = b.current
		}
		if one.newest != nil {
			one.session.MarkMessage(one.newest, "")
			one.newest = nil
		}
	}
	return b.current
}

func owns(session sarama.ConsumerGroupSession, partition int32) bool {
	for _, partitions := range session.Claims() {
		for _, each := range partitions {
			if each == partition {
				return true
			}
		}
	}
	return false
}

func main() {
	client := control.New()
	commitEvery := client.Duration("commit_ms")
	config := sarama.NewConfig()
	version, err := sarama.ParseKafkaVersion(client.Option("kafka_version"))
	control.Must(err)
	sarama.Logger = log.New(client, "", 0)
	config.Version = version
	config.ClientID = client.ID
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = commitEvery == 0 && client.Option("commits") != "never"
	config.Consumer.Return.Errors = true
	config.Consumer.Fetch.Min = int32(client.Number("fetch_min_bytes", 1))
	config.Consumer.MaxWaitTime = client.Duration("max_wait_ms")
	if client.Option("assignor") == "sticky" {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	}
	group, err := sarama.NewConsumerGroup([]string{client.Option("bootstrap")}, client.Option("group"), config)
	control.Must(err)
	go func() {
		for failed := range group.Errors() {
			client.Failed(failed)
		}
	}()
	handler := &batches{client: client, workers: map[int32]*worker{}}
	period := max(commitEvery, time.Second)
	go func() {
		for range time.Tick(period) {
			handler.commit()
		}
	}()
	for client.Context.Err() == nil {
		err := group.Consume(client.Context, []string{client.Option("topic")}, handler)
		if err != nil && !errors.Is(err, context.Canceled) {
			client.Failed(err)
			time.Sleep(time.Second)
		}
	}
	control.Must(group.Close())
	client.Event("closed", nil)
}
