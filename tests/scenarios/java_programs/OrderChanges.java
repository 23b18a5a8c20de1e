// An application of MongoDB: writes orders, or reads what changes in them, until its standard input ends.
//
// Arguments: server, name of the application, what it does, pause in ms between two steps.

import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.Updates;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.BsonDocument;
import org.bson.Document;
import org.bson.conversions.Bson;

public class OrderChanges {
  /** A reader that is deployed anew does so after so many steps. */
  private static final int LIFE = 240;

  private final String address;
  private final long pauseMs;
  private long events;
  private volatile boolean isOver;

  private OrderChanges(String server, String name, long pauseMs) {
    this.address = "mongodb://" + server + "/?appName=" + name;
    this.pauseMs = pauseMs;
  }

  public static void main(String[] arguments) throws Exception {
    OrderChanges one = new OrderChanges(arguments[0], arguments[1], Long.parseLong(arguments[3]));
    one.watchInput();
    switch (arguments[2]) {
      case "write" -> one.write();
      case "follow" -> one.follow(List.of(), 100, 1, Integer.MAX_VALUE);
      case "deployed" -> one.follow(List.of(), 100, 1, LIFE);
      case "slowly" -> one.follow(List.of(), 5, 5, Integer.MAX_VALUE);
      case "deletions" -> one.follow(
          List.of(Aggregates.match(Filters.eq("operationType", "delete"))), 100, 1, Integer.MAX_VALUE);
      default -> throw new IllegalArgumentException(arguments[2]);
    }
    System.out.println("events: " + one.events);
  }

  /** Inserts and updates; each fiftieth step deletes. */
  private void write() throws Exception {
    try (MongoClient client = MongoClients.create(address)) {
      MongoCollection<Document> orders = orders(client);
      for (int step = 1; !isOver; step++) {
        if (step % 50 == 0) {
          orders.deleteOne(Filters.eq("_id", step - 50 + 1));
        } else if (step % 2 == 0) {
          orders.updateOne(Filters.eq("_id", step - 1), Updates.set("state", "paid"));
        } else {
          orders.insertOne(new Document("_id", step).append("total", step * 1.5));
        }
        events++;
        Thread.sleep(pauseMs);
      }
    }
  }

  /** Reads up to `most` events each step; after `life` steps all is closed, and the next reader resumes. */
  private void follow(List<Bson> pipeline, int batch, int most, int life) throws Exception {
    BsonDocument token = null;
    while (!isOver) {
      try (MongoClient client = MongoClients.create(address);
          MongoChangeStreamCursor<ChangeStreamDocument<Document>> cursor = open(client, pipeline, batch, token)) {
        for (int step = 0; step < life && !isOver; step++) {
          for (int number = 0; number < most && cursor.tryNext() != null; number++) {
            events++;
          }
          token = cursor.getResumeToken();
          Thread.sleep(pauseMs);
        }
      }
    }
  }

  private static MongoChangeStreamCursor<ChangeStreamDocument<Document>> open(
      MongoClient client, List<Bson> pipeline, int batch, BsonDocument token) {
    var stream = orders(client).watch(pipeline).batchSize(batch).maxAwaitTime(1, TimeUnit.SECONDS);
    return (token == null ? stream : stream.resumeAfter(token)).cursor();
  }

  private static MongoCollection<Document> orders(MongoClient client) {
    return client.getDatabase("shop").getCollection("orders");
  }

  /** Waits until the standard input ends, beside the work. */
  private void watchInput() {
    Thread watcher = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {}
      } catch (IOException error) {
        // it is closed
      }
      isOver = true;
    });
    watcher.setDaemon(true);
    watcher.start();
  }
}
