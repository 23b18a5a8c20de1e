import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** Serves MongoDB's protocol of version 3.0 from memory, at the host and port given, until the process ends. */
class MongoJavaServer {
    public static void main(String[] arguments) {
        new MongoServer(new MemoryBackend()).bind(arguments[0], Integer.parseInt(arguments[1]));
    }
}
