// A Kafka Streams application: counts words by key, over a repartition topic, with a changelog; in memory.
//
//   StreamsApp BOOTSTRAP APPLICATION_ID INPUT OUTPUT GUARANTEE COMMIT_MS [GROUP_PROTOCOL]
//
// GROUP_PROTOCOL is classic (the default) or streams (KIP-1071).
// The end of standard input ends it in good order.

import java.nio.file.Files;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

public final class StreamsApp {
  public static void main(String[] args) throws Exception {
    Properties config = new Properties();
    config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[4]);
    config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, args[5]);
    config.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("streams-").toString());
    config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
    config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
    if (args.length > 6) {
      config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, args[6]);
    }
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream(args[2])
        .selectKey((key, value) -> value.substring(value.length() - 1))
        .groupByKey()
        .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
        .toStream()
        .mapValues(String::valueOf)
        .to(args[3]);
    try (KafkaStreams streams = new KafkaStreams(builder.build(config), config)) {
      streams.start();
      while (System.in.read() >= 0) {
        // Nothing is said to us.
      }
    }
  }
}
