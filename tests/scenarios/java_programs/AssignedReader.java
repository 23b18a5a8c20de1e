// A reader as Flink's source is: it assigns itself partitions, reads on, and with each checkpoint commits its position
// under a group's name, without being a member. While it is ill its checkpoints fail, and nothing is committed.

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class AssignedReader {
  public static void main(String[] arguments) {
    Control control = new Control(arguments);
    Properties settings = new Properties();
    settings.put("bootstrap.servers", control.option("bootstrap"));
    settings.put("client.id", control.option("client_id"));
    settings.put("group.id", control.option("group"));
    settings.put("enable.auto.commit", "false");
    settings.put("auto.offset.reset", "earliest");
    settings.put("fetch.min.bytes", control.option("fetch_min_bytes"));
    settings.put("fetch.max.wait.ms", control.option("max_wait_ms"));
    List<TopicPartition> partitions = new ArrayList<>();
    for (String partition : control.option("partitions").split("-")) {
      partitions.add(new TopicPartition(control.option("topic"), Integer.parseInt(partition)));
    }
    long periodNs = Long.parseLong(control.option("commit_ms")) * 1_000_000;
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
      consumer.assign(partitions);
      Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
      long dueNs = System.nanoTime() + periodNs;
      while (!control.isStopped()) {
        for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(300))) {
          read.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        if (System.nanoTime() >= dueNs) {
          dueNs += periodNs;
          if (!control.isIll() && !read.isEmpty()) {
            consumer.commitAsync(Map.copyOf(read), (offsets, error) -> {
              if (error != null) {
                control.failed(error);
              }
            });
            read.clear();
          }
        }
      }
    }
    control.event("closed", "");
  }
}
