import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** Serves MongoDB's protocol from memory with an oplog, at the host and port given, until the process ends. */
class MongoJavaServerWithOplog {
    public static void main(String[] arguments) {
        MongoServer server = new MongoServer(new MemoryBackend());
        server.enableOplog();
        server.bind(arguments[0], Integer.parseInt(arguments[1]));
    }
}
