package oracle;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;

/** Contents for records fields: every format, codec and kind of batch that Kafka itself can write. */
final class RecordSamples {
    private static final long NOW = 1_700_000_000_000L;
    private static final int V2_ATTRIBUTES = 21;
    private static final int V2_CRC = 17;

    private RecordSamples() {}

    static List<byte[]> make() {
        List<byte[]> samples = new ArrayList<>();
        addPlain(samples);
        addProducers(samples);
        addControl(samples);
        addOddities(samples);
        addSequences(samples);
        return samples;
    }

    private static void addPlain(List<byte[]> samples) {
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec == CompressionType.ZSTD && magic < 2) {
                    continue; // Kafka refuses it
                }
                Compression compression = Compression.of(codec).build();
                samples.add(bytes(MemoryRecords.withRecords(magic, 0, compression, records(3))));
                samples.add(bytes(MemoryRecords.withRecords(magic, 1L << 40, compression, records(1))));
            }
        }
        for (byte magic = 1; magic <= 2; magic++) {
            samples.add(logAppendTime(magic, Compression.NONE));
            samples.add(logAppendTime(magic, Compression.gzip().build()));
        }
    }

    private static void addProducers(List<byte[]> samples) {
        long producer = 4_711;
        short epoch = 3;
        Compression lz4 = Compression.of(CompressionType.LZ4).build();
        int lastSequence = Integer.MAX_VALUE - 1; // the sequence of the third record wraps to 0
        samples.add(bytes(MemoryRecords.withIdempotentRecords(Compression.NONE, producer, epoch, 17, records(2))));
        samples.add(bytes(MemoryRecords.withIdempotentRecords(
            (byte) 2, 99, lz4, Long.MAX_VALUE, Short.MAX_VALUE, lastSequence, 12, records(3))));
        samples.add(bytes(MemoryRecords.withTransactionalRecords(
            1_000, lz4, producer, epoch, 0, 7, records(4))));
    }

    private static void addControl(List<byte[]> samples) {
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            samples.add(bytes(MemoryRecords.withEndTransactionMarker(
                500, NOW, 3, 4_711, (short) 3, new EndTransactionMarker(type, 29))));
        }
        samples.add(bytes(MemoryRecords.withLeaderChangeMessage(
            77, NOW, 5, ByteBuffer.allocate(256), new LeaderChangeMessage().setLeaderId(1))));
    }

    private static void addOddities(List<byte[]> samples) {
        byte[] batch = bytes(MemoryRecords.withRecords(5, Compression.NONE, 9, records(2)));
        samples.add(emptyBatch());
        samples.add(withAttribute(batch, 0x40)); // bit 6: the base timestamp is a delete horizon (KIP-534)
        for (byte magic = 0; magic <= 2; magic++) {
            byte[] damaged = bytes(MemoryRecords.withRecords(magic, 5, Compression.NONE, records(1)));
            damaged[damaged.length - 1] ^= 1; // its checksum no longer matches
            samples.add(damaged);
        }
        samples.add(new byte[0]);
    }

    /** Several batches in one field, and a tail that was cut off: brokers fill the fetch size to the last byte. */
    private static void addSequences(List<byte[]> samples) {
        byte[] newest = bytes(MemoryRecords.withRecords(5, Compression.NONE, 9, records(2)));
        byte[] gzip = bytes(MemoryRecords.withRecords(7, Compression.gzip().build(), 9, records(30)));
        byte[] legacy = bytes(MemoryRecords.withRecords((byte) 1, 7, Compression.NONE, records(2)));
        samples.add(join(newest, gzip, newest));
        samples.add(join(legacy, newest));
        for (int left : new int[] {1, 11, 12, 16, 17, 40, 60, 61, 62, newest.length - 1}) {
            samples.add(join(gzip, Arrays.copyOf(newest, left)));
        }
        samples.add(join(newest, Arrays.copyOf(legacy, 30)));
    }

    private static SimpleRecord[] records(int count) {
        SimpleRecord[] records = new SimpleRecord[count];
        for (int i = 0; i < count; i++) {
            byte[] key = i == 1 ? null : ("key" + i).getBytes();
            byte[] value = i == 2 ? null : ("value" + i).repeat(20).getBytes();
            records[i] = new SimpleRecord(NOW + 10L * i, key, value);
        }
        return records;
    }

    private static byte[] logAppendTime(byte magic, Compression compression) {
        ByteBuffer buffer = ByteBuffer.allocate(1024);
        try (MemoryRecordsBuilder builder = MemoryRecords.builder(
                buffer, magic, compression, TimestampType.LOG_APPEND_TIME, 20, NOW)) {
            Header[] headers = magic < 2 ? new Header[0] : new Header[] {new RecordHeader("h", new byte[] {1})};
            builder.append(NOW - 5, "k".getBytes(), "v".getBytes(), headers);
            builder.append(NOW - 4, "k".getBytes(), "v".getBytes(), headers);
            return bytes(builder.build());
        }
    }

    /** What compaction leaves of a batch whose records are all gone, for the sake of its sequence numbers. */
    private static byte[] emptyBatch() {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(
            buffer, (byte) 2, 4_711, (short) 3, 10, 100, 109, 2, TimestampType.CREATE_TIME, NOW, true, false);
        return buffer.array();
    }

    private static byte[] withAttribute(byte[] batch, int bit) {
        byte[] changed = batch.clone();
        changed[V2_ATTRIBUTES + 1] |= (byte) bit;
        CRC32C crc = new CRC32C();
        crc.update(changed, V2_ATTRIBUTES, changed.length - V2_ATTRIBUTES);
        ByteBuffer.wrap(changed).putInt(V2_CRC, (int) crc.getValue());
        return changed;
    }

    private static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            joined.writeBytes(part);
        }
        return joined.toByteArray();
    }
}
