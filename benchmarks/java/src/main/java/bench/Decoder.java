package bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;

/** Kafka's generated classes on one frame: parsed; as JSON text; and with its records read. */
final class Decoder {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final MethodType WRITE =
        MethodType.methodType(JsonNode.class, ApiMessage.class, short.class, boolean.class);

    private final Map<Class<?>, MethodHandle> writers = new HashMap<>();

    /** What came of all frames; also keeps the compiler from leaving out work whose result nobody sees. */
    long bytesOfJson;
    long records;

    /** The bytes behind the body; a frame that was understood has none. */
    int decode(Frame frame, Mode mode) throws Throwable {
        ApiMessageType api = ApiMessageType.fromApiKey(frame.apiKey());
        short version = frame.version();
        if (version < api.lowestSupportedVersion() || version > api.highestSupportedVersion(true)) {
            throw new IllegalArgumentException("not a version of this release");
        }
        ByteBuffer buffer = ByteBuffer.wrap(frame.data());
        ByteBufferAccessor in = new ByteBufferAccessor(buffer);
        ApiMessage header;
        ApiMessage body;
        short headerVersion;
        if (frame.isResponse()) {
            headerVersion = api.responseHeaderVersion(version);
            header = new ResponseHeaderData(in, headerVersion);
            body = api.newResponse();
        } else {
            headerVersion = api.requestHeaderVersion(version);
            header = new RequestHeaderData(in, headerVersion);
            body = api.newRequest();
        }
        body.read(in, version);
        if (mode != Mode.PARSE) {
            bytesOfJson += json(header, headerVersion) + json(body, version);
        }
        if (mode == Mode.JSON_RECORDS) {
            readRecords(body);
        }
        return buffer.remaining();
    }

    private int json(ApiMessage message, short version) throws Throwable {
        MethodHandle writer = writers.get(message.getClass());
        if (writer == null) {
            Class<?> type = message.getClass();
            writer = MethodHandles.publicLookup()
                .findStatic(Class.forName(type.getName() + "JsonConverter"), "write",
                    MethodType.methodType(JsonNode.class, type, short.class, boolean.class))
                .asType(WRITE);
            writers.put(type, writer);
        }
        return JSON.writeValueAsBytes((JsonNode) writer.invokeExact(message, version, false)).length;
    }

    private void readRecords(ApiMessage body) {
        if (body instanceof ProduceRequestData produce) {
            for (var topic : produce.topicData()) {
                for (var partition : topic.partitionData()) {
                    iterate(partition.records());
                }
            }
        } else if (body instanceof FetchResponseData fetch) {
            for (var topic : fetch.responses()) {
                for (var partition : topic.partitions()) {
                    iterate(partition.records());
                }
            }
        }
    }

    private void iterate(BaseRecords field) {
        if (field instanceof MemoryRecords memory) {
            iterate(memory);
        }
    }

    /** Checksum of each batch, position, time, sizes and headers of each record. */
    void iterate(MemoryRecords memory) {
        for (MutableRecordBatch batch : memory.batches()) {
            if (!batch.isValid()) {
                continue;
            }
            for (var record : batch) {
                records += 1;
                bytesOfJson ^= record.offset() + record.timestamp() + record.keySize() + record.valueSize();
                bytesOfJson += record.headers().length;
            }
        }
    }

    enum Mode { PARSE, JSON, JSON_RECORDS, BATCHES }
}
