// A Connect source: a record each half second.

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

public class Ticks extends SourceConnector {
  private Map<String, String> settings;

  @Override
  public void start(Map<String, String> given) {
    settings = given;
  }

  @Override
  public Class<? extends Task> taskClass() {
    return Ticking.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int most) {
    return List.of(settings);
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public String version() {
    return "1";
  }

  public static class Ticking extends SourceTask {
    private String topic;
    private long number;

    @Override
    public void start(Map<String, String> given) {
      topic = given.get("to");
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
      Thread.sleep(500);
      number++;
      return List.of(new SourceRecord(
          Map.of("source", "ticks"), Map.of("number", number), topic, (int) (number % 2), Schema.STRING_SCHEMA,
          "tick " + number));
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
      return "1";
    }
  }
}
