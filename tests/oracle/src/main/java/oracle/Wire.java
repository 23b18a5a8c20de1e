package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/** Kafka's generated code: JSON to message, message to bytes and back, message to JSON. */
final class Wire {
    private Wire() {}

    static Message fromJson(Class<?> type, JsonNode json, short version) throws ReflectiveOperationException {
        return (Message) unwrapped(() -> converter(type).getMethod("read", JsonNode.class, short.class)
            .invoke(null, json, version));
    }

    /** The JSON that the broker's request log shows; records appear as their size. */
    static JsonNode toJson(Message message, short version) throws ReflectiveOperationException {
        Class<?> type = message.getClass();
        return (JsonNode) unwrapped(() -> converter(type).getMethod("write", type, short.class, boolean.class)
            .invoke(null, message, version, false));
    }

    static byte[] toBytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(message.getClass() + " wrote less than it announced");
        }
        return buffer.array();
    }

    static Message fromBytes(Class<?> type, byte[] bytes, short version) throws ReflectiveOperationException {
        return (Message) unwrapped(() -> type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version));
    }

    private static Class<?> converter(Class<?> type) throws ClassNotFoundException {
        return Class.forName(type.getName() + "JsonConverter");
    }

    private interface Call {
        Object run() throws ReflectiveOperationException;
    }

    /** Runs a reflective call; what the called method throws is thrown as it is. */
    private static Object unwrapped(Call call) throws ReflectiveOperationException {
        try {
            return call.run();
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw e;
        }
    }
}
