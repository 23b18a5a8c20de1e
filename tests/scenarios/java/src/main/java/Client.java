// What does a Java client do in a scenario? One producer or consumer, told by arguments, logging events as NDJSON.
//
//   Client produce  key=value...   count, topic, partitions, compression, interval_ms, idempotent
//   Client transact key=value...   transactional_id, transactions, records, interval_ms, hold_ms, leave_open
//   Client consume  key=value...   group, topic, isolation, commit_ms (0: the library commits), work_ms
//   Client share    key=value...   group, topic, poison (see ShareReader)
//
// Common: bootstrap, client_id, and what begins with "kafka." goes to the library as it is. A line "stop" (or the end) on standard input ends the client in good order,
// "pause" makes a consumer go on without polling or committing, as if its application were busy.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Client {
  private static volatile boolean stopped;
  private static volatile boolean paused;

  private final Map<String, String> options;
  private final String clientId;

  private Client(Map<String, String> options) {
    this.options = options;
    this.clientId = options.get("client_id");
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 1; i < args.length; i++) {
      String[] pair = args[i].split("=", 2);
      options.put(pair[0], pair[1]);
    }
    Thread listener = new Thread(Client::listen);
    listener.setDaemon(true);
    listener.start();
    Client client = new Client(options);
    client.reportLog();
    switch (args[0]) {
      case "produce" -> client.produce();
      case "transact" -> client.transact();
      case "consume" -> client.consume();
      case "share" -> ShareReader.run(options, client::event, () -> stopped, () -> paused);
      default -> throw new IllegalArgumentException("unknown command " + args[0]);
    }
  }

  /** Reports what the library logs as a warning or worse, through java.util.logging. */
  private void reportLog() {
    Logger root = Logger.getLogger("");
    for (Handler handler : root.getHandlers()) {
      root.removeHandler(handler);
    }
    root.setLevel(Level.WARNING);
    root.addHandler(new Handler() {
      @Override
      public void publish(LogRecord line) {
        event("log", "text", (line.getLevel() + " " + line.getMessage()).replaceAll("\\s+", " "));
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    });
  }

  private static void listen() {
    try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = in.readLine(); line != null && !line.equals("stop"); line = in.readLine()) {
        paused = line.equals("pause");
      }
    } catch (java.io.IOException e) {
      // The parent is gone: stop.
    }
    stopped = true;
  }

  // ---- producers

  private void produce() throws Exception {
    Properties config = producerConfig();
    config.put("enable.idempotence", options.getOrDefault("idempotent", "true"));
    config.put("compression.type", options.getOrDefault("compression", "none"));
    int count = number("count", Integer.MAX_VALUE);
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      for (int i = 0; i < count && !stopped; i++) {
        send(producer, i);
        Thread.sleep(number("interval_ms", 0));
      }
    }
    event("closed");
  }

  private void transact() throws Exception {
    Properties config = producerConfig();
    config.put("transactional.id", options.get("transactional_id"));
    config.putIfAbsent("transaction.timeout.ms", options.getOrDefault("transaction_timeout_ms", "600000"));
    boolean leaveOpen = Boolean.parseBoolean(options.get("leave_open"));
    int transactions = number("transactions", Integer.MAX_VALUE);
    int records = number("records", 5);
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      producer.initTransactions();
      for (int t = 0; t < transactions && !stopped; t++) {
        producer.beginTransaction();
        event("txn_begin", "transactional_id", options.get("transactional_id"));
        for (int i = 0; i < records; i++) {
          send(producer, t * records + i);
        }
        producer.flush();
        if (leaveOpen) {
          event("txn_open", "transactional_id", options.get("transactional_id"));
          while (!stopped) {
            Thread.sleep(50);
          }
          producer.abortTransaction();
          event("txn_abort", "transactional_id", options.get("transactional_id"));
        } else {
          for (int held = 0; held < number("hold_ms", 0) && !stopped; held += 10) {
            Thread.sleep(10);
          }
          producer.commitTransaction();
          event("txn_commit", "transactional_id", options.get("transactional_id"));
          Thread.sleep(number("interval_ms", 0));
        }
      }
    }
    event("closed");
  }

  private Future<RecordMetadata> send(KafkaProducer<String, String> producer, int i) {
    String topic = options.get("topic");
    String key = topic + "-" + i;
    String value = "{\"number\":" + i + ",\"from\":\"" + clientId + "\",\"amount\":" + (i % 97) + ".00}";
    int partition = i % number("partitions", 1);
    return producer.send(new ProducerRecord<>(topic, partition, key, value), (sent, error) -> {
      if (error == null) {
        event("produced", "topic", topic, "partition", sent.partition(), "offset", sent.offset());
      } else {
        event("error", "topic", topic, "partition", partition, "error", error.toString());
      }
    });
  }

  private Properties producerConfig() {
    Properties config = new Properties();
    config.put("bootstrap.servers", options.get("bootstrap"));
    config.put("client.id", clientId);
    config.put("linger.ms", "30");
    config.put("key.serializer", StringSerializer.class.getName());
    config.put("value.serializer", StringSerializer.class.getName());
    return withOwn(config);
  }

  private Properties withOwn(Properties config) {
    options.forEach((name, value) -> {
      if (name.startsWith("kafka.")) {
        config.put(name.substring("kafka.".length()), value);
      }
    });
    return config;
  }

  // ---- consumer

  private void consume() throws Exception {
    Properties config = new Properties();
    config.put("bootstrap.servers", options.get("bootstrap"));
    config.put("client.id", clientId);
    config.put("group.id", options.get("group"));
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", "false");
    config.put("isolation.level", options.getOrDefault("isolation", "read_uncommitted"));
    config.put("fetch.max.wait.ms", "500");
    config.put("fetch.min.bytes", options.getOrDefault("fetch_min_bytes", "1"));
    config.put("key.deserializer", StringDeserializer.class.getName());
    config.put("value.deserializer", StringDeserializer.class.getName());
    int commitMs = number("commit_ms", 250);
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(withOwn(config))) {
      // What is committed as far as this member knows; a partition is absent until its first position is known.
      Map<TopicPartition, Long> committed = new HashMap<>();
      consumer.subscribe(List.of(options.get("topic")), listener(consumer, committed));
      long last = System.currentTimeMillis();
      while (!stopped) {
        if (paused) {
          Thread.sleep(50);
          continue;
        }
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
        seen(records);
        Thread.sleep(records.isEmpty() ? 0 : number("work_ms", 0));
        if (commitMs > 0 && !paused && System.currentTimeMillis() - last >= commitMs) {
          commit(consumer, committed);
          last = System.currentTimeMillis();
        }
      }
      if (commitMs > 0 && !paused) {
        commit(consumer, committed);
      }
    }
    event("closed");
  }

  private void seen(ConsumerRecords<String, String> records) {
    for (TopicPartition tp : records.partitions()) {
      List<ConsumerRecord<String, String>> some = records.records(tp);
      event("consumed", "topic", tp.topic(), "partition", tp.partition(), "group", options.get("group"),
          "first_offset", some.get(0).offset(), "offset", some.get(some.size() - 1).offset(), "count", some.size());
    }
  }

  // Commits the position of every partition that moved. The position also passes transaction markers.
  private void commit(KafkaConsumer<String, String> consumer, Map<TopicPartition, Long> committed) {
    Map<TopicPartition, OffsetAndMetadata> moved = new HashMap<>();
    for (TopicPartition tp : consumer.assignment()) {
      long position = consumer.position(tp);
      if (committed.getOrDefault(tp, 0L) != position) {
        moved.put(tp, new OffsetAndMetadata(position));
      }
    }
    if (moved.isEmpty()) {
      return;
    }
    String error = null;
    try {
      consumer.commitSync(moved);
    } catch (CommitFailedException e) {
      error = e.toString();
    } catch (KafkaException e) {
      error = e.toString();
    }
    for (Map.Entry<TopicPartition, OffsetAndMetadata> each : moved.entrySet()) {
      TopicPartition tp = each.getKey();
      if (error == null) {
        committed.put(tp, each.getValue().offset());
      }
      event(error == null ? "commit_ok" : "commit_error", "topic", tp.topic(), "partition", tp.partition(),
          "offset", each.getValue().offset(), "group", options.get("group"),
          "member", consumer.groupMetadata().memberId(), "generation", consumer.groupMetadata().generationId(),
          "error", error);
    }
  }

  private ConsumerRebalanceListener listener(KafkaConsumer<?, ?> consumer, Map<TopicPartition, Long> committed) {
    return new ConsumerRebalanceListener() {
      @Override
      public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        log("revoked", partitions);
        partitions.forEach(committed::remove);
      }

      @Override
      public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        log("assigned", partitions);
        for (TopicPartition tp : partitions) {
          committed.put(tp, consumer.position(tp));
        }
      }

      private void log(String kind, Collection<TopicPartition> partitions) {
        for (TopicPartition tp : partitions) {
          event(kind, "topic", tp.topic(), "partition", tp.partition(), "group", options.get("group"),
              "member", consumer.groupMetadata().memberId(), "generation", consumer.groupMetadata().generationId());
        }
      }
    };
  }

  // ---- events

  private int number(String name, int fallback) {
    return Integer.parseInt(options.getOrDefault(name, String.valueOf(fallback)));
  }

  private synchronized void event(String kind, Object... fields) {
    StringBuilder line = new StringBuilder("{\"ts_ms\":").append(System.currentTimeMillis());
    line.append(",\"client_id\":\"").append(clientId).append("\",\"kind\":\"").append(kind).append('"');
    for (int i = 0; i < fields.length; i += 2) {
      Object value = fields[i + 1];
      if (value == null) {
        continue;
      }
      line.append(",\"").append(fields[i]).append("\":");
      if (value instanceof Number) {
        line.append(value);
      } else {
        line.append('"').append(value.toString().replace("\\", "\\\\").replace("\"", "'").replace("\n", " "));
        line.append('"');
      }
    }
    System.out.println(line.append('}'));
  }
}
