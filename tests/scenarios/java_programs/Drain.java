// A Connect sink: takes records and forgets them.

import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

public class Drain extends SinkConnector {
  private Map<String, String> settings;

  @Override
  public void start(Map<String, String> given) {
    settings = given;
  }

  @Override
  public Class<? extends Task> taskClass() {
    return Draining.class;
  }

  @Override
  public List<Map<String, String>> taskConfigs(int most) {
    return Collections.nCopies(most, settings);
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

  public static class Draining extends SinkTask {
    @Override
    public void start(Map<String, String> given) {}

    @Override
    public void put(Collection<SinkRecord> records) {}

    @Override
    public void stop() {}

    @Override
    public String version() {
      return "1";
    }
  }
}
