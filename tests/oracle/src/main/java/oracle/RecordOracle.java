package oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;

/**
 * Writes records fields of every format and codec, each with the records that Kafka's own classes find in it.
 *
 * <p>Argument: the gzipped NDJSON file to write.
 */
public final class RecordOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    private RecordOracle() {}

    public static void main(String[] arguments) throws Exception {
        try (Writer out = new BufferedWriter(new OutputStreamWriter(
                new GZIPOutputStream(new FileOutputStream(arguments[0])), StandardCharsets.UTF_8))) {
            int number = 0;
            for (byte[] field : RecordSamples.make()) {
                write(out, "sample " + number++, field);
            }
            for (ManyRecords.Named field : ManyRecords.make()) {
                write(out, field.name(), field.bytes());
            }
        }
    }

    private static void write(Writer out, String name, byte[] field) throws Exception {
        ObjectNode line = JsonNodeFactory.instance.objectNode().put("name", name).put("field", HEX.formatHex(field));
        ArrayNode records = line.putArray("records");
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(field)).batches()) {
            try {
                addRecords(records, batch);
            } catch (InvalidRecordException damaged) {
                line.put("is_damaged", true);
            }
        }
        out.write(JSON.writeValueAsString(line));
        out.write('\n');
    }

    private static void addRecords(ArrayNode records, RecordBatch batch) {
        for (var record : batch) { // Record is the name of a class of Java, too
            ObjectNode facts = records.addObject()
                .put("magic", batch.magic())
                .put("codec", batch.compressionType().name)
                .put("offset", record.offset())
                .put("timestamp", record.timestamp())
                .put("timestamp_type", batch.timestampType().name)
                .put("key_size", record.hasKey() ? (Integer) record.keySize() : null)
                .put("value_size", record.hasValue() ? (Integer) record.valueSize() : null)
                .put("sequence", record.sequence())
                .put("key", hex(record.key()))
                .put("value", hex(record.value()))
                .put("is_control", batch.isControlBatch());
            ArrayNode headers = facts.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
            }
            if (batch.isControlBatch()) {
                ControlRecordType type = ControlRecordType.parse(record.key());
                facts.put("control_type", type.name());
                if (List.of(ControlRecordType.COMMIT, ControlRecordType.ABORT).contains(type)) {
                    facts.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
                }
            }
        }
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
