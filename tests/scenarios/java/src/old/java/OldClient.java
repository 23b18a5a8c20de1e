// What does a Java client of 2016 do in a scenario? Kafka 0.9 and 0.10 clients, which write the old message formats.
//
//   OldClient produce key=value...   count, topic, compression
//   OldClient consume key=value...   count, topic, group: reads so many records, commits, ends
//
// Common: bootstrap, client_id. Events go to standard output as NDJSON.

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

public final class OldClient {
  private final Map<String, String> options;

  private OldClient(Map<String, String> options) {
    this.options = options;
  }

  public static void main(String[] args) {
    Map<String, String> options = new HashMap<>();
    for (int i = 1; i < args.length; i++) {
      String[] pair = args[i].split("=", 2);
      options.put(pair[0], pair[1]);
    }
    OldClient client = new OldClient(options);
    if (args[0].equals("produce")) {
      client.produce();
    } else {
      client.consume();
    }
  }

  private void produce() {
    Properties config = config("org.apache.kafka.common.serialization.StringSerializer", "serializer");
    config.put("linger.ms", "50");
    config.put("acks", "all");
    config.put("compression.type", options.get("compression"));
    int count = Integer.parseInt(options.get("count"));
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      for (int i = 0; i < count; i++) {
        String value = "{\"number\":" + i + ",\"from\":\"" + options.get("client_id") + "\"}";
        producer.send(new ProducerRecord<>(options.get("topic"), "key-" + i, value), logged());
      }
    }
  }

  private Callback logged() {
    return new Callback() {
      @Override
      public void onCompletion(RecordMetadata sent, Exception error) {
        if (error == null) {
          event("produced", sent.topic(), sent.partition(), sent.offset(), null);
        } else {
          event("error", options.get("topic"), -1, -1, error.toString());
        }
      }
    };
  }

  private void consume() {
    Properties config = config("org.apache.kafka.common.serialization.StringDeserializer", "deserializer");
    config.put("group.id", options.get("group"));
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", "false");
    config.put("session.timeout.ms", "10000");
    int wanted = Integer.parseInt(options.get("count"));
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
      consumer.subscribe(Collections.singletonList(options.get("topic")));
      int seen = 0;
      while (seen < wanted) {
        ConsumerRecords<String, String> records = consumer.poll(500);
        Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
          event("consumed", record.topic(), record.partition(), record.offset(), null);
          TopicPartition tp = new TopicPartition(record.topic(), record.partition());
          done.put(tp, new OffsetAndMetadata(record.offset() + 1));
          seen++;
        }
        if (!done.isEmpty()) {
          consumer.commitSync(done);
          for (Map.Entry<TopicPartition, OffsetAndMetadata> each : done.entrySet()) {
            event("commit_ok", each.getKey().topic(), each.getKey().partition(), each.getValue().offset(), null);
          }
        }
      }
    }
  }

  private Properties config(String serde, String suffix) {
    Properties config = new Properties();
    config.put("bootstrap.servers", options.get("bootstrap"));
    config.put("client.id", options.get("client_id"));
    config.put("key." + suffix, serde);
    config.put("value." + suffix, serde);
    return config;
  }

  private synchronized void event(String kind, String topic, int partition, long offset, String error) {
    StringBuilder line = new StringBuilder("{\"ts_ms\":").append(System.currentTimeMillis());
    line.append(",\"client_id\":\"").append(options.get("client_id")).append("\",\"kind\":\"").append(kind);
    line.append("\",\"topic\":\"").append(topic).append("\",\"partition\":").append(partition);
    line.append(",\"offset\":").append(offset);
    if (options.containsKey("group")) {
      line.append(",\"group\":\"").append(options.get("group")).append('"');
    }
    if (error != null) {
      line.append(",\"error\":\"").append(error.replace("\\", "\\\\").replace("\"", "'")).append('"');
    }
    System.out.println(line.append('}'));
  }
}
