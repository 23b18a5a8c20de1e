//! A member of a consumer group by the crate rdkafka: it stores offsets of what is done, and commits them by hand.
//!
//! While it is ill, offsets of partition 0 are not stored, so that it is read on and never committed.

use std::time::{Duration, Instant};

use clients::Control;
use rdkafka::Message;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let control = Control::new();
    let topic = control.option("topic");
    let every = control.duration("commit_ms");
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", control.option("bootstrap"))
        .set("client.id", control.option("client_id"))
        .set("group.id", control.option("group"))
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", every.is_none().to_string())
        .set("enable.auto.offset.store", "false")
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("fetch.min.bytes", "100000")
        .set("fetch.wait.max.ms", control.option("max_wait_ms"))
        .create()?;
    consumer.subscribe(&[topic])?;
    let mut committed = Instant::now();
    while !control.stopped() {
        if let Ok(received) =
            tokio::time::timeout(Duration::from_millis(300), consumer.recv()).await
        {
            match received {
                Ok(message) if control.ill() && message.partition() == 0 => {}
                Ok(message) => consumer.store_offset_from_message(&message)?,
                Err(error) => control.event("error", json!({"error": error.to_string()})),
            }
        }
        if every.is_some_and(|period| committed.elapsed() >= period) {
            committed = Instant::now();
            // Without something new to commit it says so, which is no error here.
            let _ = consumer.commit_consumer_state(CommitMode::Sync);
        }
    }
    let _ = consumer.commit_consumer_state(CommitMode::Sync);
    drop(consumer);
    control.event("closed", json!({}));
    Ok(())
}
