// A listener of Spring with asynchronous acknowledgements: workers acknowledge records later, in any order.
//
// While it is ill, one record of partition 0 is never acknowledged; Spring then commits nothing behind it, and reads
// nothing new until all records of a poll are acknowledged.

import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingMessageListener;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.support.Acknowledgment;

public final class SpringGroup {
  private static final Queue<Acknowledgment> FORGOTTEN = new ConcurrentLinkedQueue<>();

  public static void main(String[] arguments) throws InterruptedException {
    Control control = new Control(arguments);
    control.reportLog();
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", control.option("bootstrap"));
    settings.put("group.id", control.option("group"));
    settings.put("client.id", control.option("client_id"));
    settings.put("auto.offset.reset", "earliest");
    settings.put("fetch.min.bytes", control.option("fetch_min_bytes"));
    settings.put("fetch.max.wait.ms", control.option("max_wait_ms"));
    settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    if (control.option("protocol").equals("consumer")) {
      settings.remove("partition.assignment.strategy");
      settings.put("group.protocol", "consumer");
    }
    int workMs = Integer.parseInt(control.option("work_ms"));
    ScheduledExecutorService workers = Executors.newScheduledThreadPool(2);
    ContainerProperties properties = new ContainerProperties(control.option("topic"));
    properties.setAckMode(ContainerProperties.AckMode.MANUAL);
    properties.setAsyncAcks(true);
    properties.setPollTimeout(1000);
    properties.setMessageListener((AcknowledgingMessageListener<byte[], byte[]>) (record, acknowledgment) -> {
      if (control.isIll() && record.partition() == 0 && FORGOTTEN.isEmpty()) {
        FORGOTTEN.add(acknowledgment);
        return;
      }
      long delay = workMs / 2 + ThreadLocalRandom.current().nextInt(workMs / 2);
      workers.schedule(() -> acknowledgment.acknowledge(), delay, TimeUnit.MILLISECONDS);
    });
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    var container = new ConcurrentMessageListenerContainer<byte[], byte[]>(
        new DefaultKafkaConsumerFactory<>(settings, bytes, bytes), properties);
    container.setConcurrency(Integer.parseInt(control.option("concurrency")));
    container.start();
    while (!control.isStopped()) {
      if (!control.isIll()) {
        for (Acknowledgment late = FORGOTTEN.poll(); late != null; late = FORGOTTEN.poll()) {
          late.acknowledge();
        }
      }
      Thread.sleep(200);
    }
    container.stop();
    workers.shutdown();
    control.event("closed", "");
    System.exit(0);
  }
}
