package oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;

/** What Kafka's own record classes say of the batches in a records field. */
final class BatchFacts {
    private BatchFacts() {}

    /** The whole batches of one field, and how many bytes of a cut-off batch follow them. */
    static ObjectNode of(byte[] field) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(field));
        ObjectNode facts = JsonNodeFactory.instance.objectNode();
        ArrayNode batches = facts.putArray("batches");
        int whole = 0;
        for (MutableRecordBatch batch : records.batches()) {
            batches.add(batch.magic() == 2 ? newest((DefaultRecordBatch) batch) : legacy(batch));
            whole += batch.sizeInBytes();
        }
        return facts.put("partialBytes", field.length - whole);
    }

    private static ObjectNode common(MutableRecordBatch batch) {
        return JsonNodeFactory.instance.objectNode()
            .put("lastOffset", batch.lastOffset())
            .put("batchLength", batch.sizeInBytes() - Records.LOG_OVERHEAD)
            .put("sizeInBytes", batch.sizeInBytes())
            .put("magic", batch.magic())
            .put("crc", batch.checksum())
            .put("crcValid", batch.isValid())
            .put("compressionType", batch.compressionType().name)
            .put("timestampType", batch.timestampType().name)
            .put("isTransactional", batch.isTransactional())
            .put("isControlBatch", batch.isControlBatch())
            .put("maxTimestamp", batch.maxTimestamp())
            .put("producerId", batch.producerId())
            .put("producerEpoch", batch.producerEpoch())
            .put("baseSequence", batch.baseSequence());
    }

    private static ObjectNode newest(DefaultRecordBatch batch) {
        ObjectNode facts = common(batch)
            .put("baseOffset", batch.baseOffset())
            .put("partitionLeaderEpoch", batch.partitionLeaderEpoch())
            .put("hasDeleteHorizonMs", batch.deleteHorizonMs().isPresent())
            .put("lastOffsetDelta", (int) (batch.lastOffset() - batch.baseOffset()))
            .put("baseTimestamp", batch.baseTimestamp())
            .put("recordsCount", batch.countOrNull());
        if (batch.isControlBatch()) {
            var marker = batch.iterator().next();
            ControlRecordType type = ControlRecordType.parse(marker.key());
            facts.put("controlType", type.name());
            if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT) {
                facts.put("coordinatorEpoch", EndTransactionMarker.deserialize(marker).coordinatorEpoch());
            }
        }
        return facts;
    }

    /** The header of a compressed v0 or v1 message has neither base offset nor count: its content tells. */
    private static ObjectNode legacy(MutableRecordBatch batch) {
        int count = 0;
        for (var ignored : batch) {
            count++;
        }
        return common(batch).put("baseOffset", batch.baseOffset()).put("recordsCount", count);
    }
}
