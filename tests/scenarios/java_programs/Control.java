// Connects a client program with its scenario: options as name=value, words on standard input ("ill", "well", "stop"),
// events as lines of JSON on standard output.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

public final class Control {
  private final Map<String, String> options = new HashMap<>();
  private volatile boolean ill;
  private volatile boolean stopped;

  public Control(String[] arguments) {
    for (String argument : arguments) {
      int at = argument.indexOf('=');
      options.put(argument.substring(0, at), argument.substring(at + 1));
    }
    Thread reader = new Thread(this::read);
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = lines.readLine(); line != null && !line.equals("stop"); line = lines.readLine()) {
        ill = line.equals("ill");
      }
    } catch (IOException ended) {
      // as "stop"
    }
    stopped = true;
  }

  public String option(String name) {
    return options.getOrDefault(name, "");
  }

  public boolean isIll() {
    return ill;
  }

  public boolean isStopped() {
    return stopped;
  }

  public void waitUntilStopped() throws InterruptedException {
    while (!stopped) {
      Thread.sleep(100);
    }
  }

  /** Reports one event; `more` is empty or begins with a comma. */
  public void event(String kind, String more) {
    System.out.printf(
        "{\"ts_ms\":%d,\"client_id\":\"%s\",\"kind\":\"%s\"%s}%n",
        System.currentTimeMillis(), option("client_id"), kind, more);
    System.out.flush();
  }

  public void failed(Throwable error) {
    event("error", ",\"error\":\"" + plain(error.toString()) + "\"");
  }

  /** Reports what libraries log as a warning or worse, through java.util.logging. */
  public void reportLog() {
    Logger root = Logger.getLogger("");
    for (Handler handler : root.getHandlers()) {
      root.removeHandler(handler);
    }
    root.setLevel(Level.WARNING);
    root.addHandler(new Handler() {
      @Override
      public void publish(LogRecord line) {
        event("log", ",\"text\":\"" + plain(line.getLevel() + " " + line.getMessage()) + "\"");
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    });
  }

  private static String plain(String text) {
    return text.replaceAll("[\"\\\\\\s]+", " ");
  }
}
