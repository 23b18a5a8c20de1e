//! A member of a consumer group by krafka, in pure Rust: it polls, and commits what is done by hand.
//!
//! While it is ill, partition 0 is left out of the commits (sickness=worker), or paused (sickness=pause).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clients::Control;
use krafka::Kafka;
use krafka::consumer::{AutoOffsetReset, GroupProtocol, OffsetAndMetadata, TopicPartition};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let control = Control::new();
    control.report_log();
    let topic = control.option("topic");
    let every = control.duration("commit_ms");
    let protocol = if control.option("protocol") == "consumer" {
        GroupProtocol::Consumer
    } else {
        GroupProtocol::Classic
    };
    let kafka = Kafka::builder(control.option("bootstrap"))
        .client_id(control.option("client_id"))
        .connect()
        .await?;
    let consumer = kafka
        .consumer(control.option("group"))
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(every.is_none())
        .fetch_min_bytes(100_000)
        .fetch_max_wait(
            control
                .duration("max_wait_ms")
                .unwrap_or(Duration::from_secs(2)),
        )
        .group_protocol(protocol)
        .build()
        .await?;
    consumer.subscribe([topic]).await?;
    let mut newest = HashMap::new();
    let (mut committed, mut is_paused) = (Instant::now(), false);
    while !control.stopped() {
        match consumer.poll(Duration::from_millis(500)).await {
            Ok(records) => {
                for record in &records {
                    if !(control.ill()
                        && record.partition == 0
                        && control.option("sickness") == "worker")
                    {
                        let done = OffsetAndMetadata::new(record.offset + 1);
                        newest.insert(
                            TopicPartition::new(record.topic.to_string(), record.partition),
                            done,
                        );
                    }
                }
            }
            Err(error) => control.event("error", json!({"error": error.to_string()})),
        }
        let pauses = control.ill() && control.option("sickness") == "pause";
        if pauses != is_paused {
            is_paused = pauses;
            if pauses {
                consumer.pause(topic, &[0]).await
            } else {
                consumer.resume(topic, &[0]).await
            }
        }
        if every.is_some_and(|period| committed.elapsed() >= period) && !newest.is_empty() {
            committed = Instant::now();
            if let Err(error) = consumer.commit_offsets(newest.drain()).await {
                control.event("commit_error", json!({"error": error.to_string()}));
            }
        }
    }
    consumer.close().await?;
    control.event("closed", json!({}));
    Ok(())
}
