// A member of a share group (KIP-932) that acknowledges each record by itself.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

final class ShareReader {
  // Of a record: who got it, and what is to be told of it.
  interface Log {
    void event(String kind, Object... fields);
  }

  private ShareReader() {}

  // Options: group, topic; poison (offsets from this number on in steps of it are released each time; 0: none),
  // pause (true: while paused, records are held without a word).
  static void run(Map<String, String> options, Log log, java.util.function.BooleanSupplier stopped,
      java.util.function.BooleanSupplier paused) throws Exception {
    Properties config = new Properties();
    config.put("bootstrap.servers", options.get("bootstrap"));
    config.put("client.id", options.get("client_id"));
    config.put("group.id", options.get("group"));
    config.put("share.acknowledgement.mode", "explicit");
    config.put("max.poll.records", "20");
    config.put("fetch.max.wait.ms", "500");
    config.put("key.deserializer", StringDeserializer.class.getName());
    config.put("value.deserializer", StringDeserializer.class.getName());
    long poison = Long.parseLong(options.getOrDefault("poison", "-1"));
    try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config)) {
      consumer.subscribe(List.of(options.get("topic")));
      while (!stopped.getAsBoolean()) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(300))) {
          boolean isPoison = record.offset() == poison;
          consumer.acknowledge(record, isPoison ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
          log.event(isPoison ? "released" : "accepted", "topic", record.topic(), "partition", record.partition(),
              "offset", record.offset(), "group", options.get("group"),
              "deliveries", record.deliveryCount().map(Short::intValue).orElse(-1));
        }
        while (paused.getAsBoolean() && !stopped.getAsBoolean()) {
          Thread.sleep(50);
        }
        consumer.commitSync();
        Thread.sleep(400);
      }
    }
    log.event("closed");
  }
}
