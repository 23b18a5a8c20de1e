package oracle;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;

/** Random records in every format and codec: few and many, with gaps between offsets, nulls, headers and sequences. */
final class ManyRecords {
    private static final long NOW = 1_700_000_000_000L;
    private static final int[] COUNTS = {1, 2, 5, 40, 700};
    /** Fills more than a hundred blocks of snappy (32 KiB in xerial framing) and several of lz4 (64 KiB). */
    private static final int LARGE_VALUE = 70_000;

    /** A records field and what it is. */
    record Named(String name, byte[] bytes) {}

    private final Random random = new Random(4_711);
    private final List<Named> fields = new ArrayList<>();

    private ManyRecords() {}

    static List<Named> make() {
        ManyRecords maker = new ManyRecords();
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec == CompressionType.ZSTD && magic < 2) {
                    continue; // Kafka refuses it
                }
                maker.addAll(magic, codec);
            }
        }
        maker.add("zstd level 22", (byte) 2, Compression.zstd().level(22).build(), TimestampType.CREATE_TIME, 900, 50, 0);
        return maker.fields;
    }

    private void addAll(byte magic, CompressionType codec) {
        Compression compression = Compression.of(codec).build();
        for (TimestampType type : List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)) {
            if (magic == 0 && type == TimestampType.LOG_APPEND_TIME) {
                continue;
            }
            for (int count : COUNTS) {
                for (long base : new long[] {0, 1, 5_000_000_000L}) {
                    String name = "v" + magic + " " + codec.name + " " + type.name + " " + count + " from " + base;
                    add(name, magic, compression, type, count, 60, base);
                }
            }
        }
        add("v" + magic + " " + codec.name + " large", magic, compression, TimestampType.CREATE_TIME, 60, LARGE_VALUE, 7);
    }

    private void add(
            String name, byte magic, Compression compression, TimestampType type, int count, int size, long base) {
        boolean isIdempotent = magic == 2 && random.nextBoolean();
        int sequence = !isIdempotent ? -1 : random.nextBoolean() ? random.nextInt(1000) : Integer.MAX_VALUE - 3;
        TimestampType actual = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : type;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), magic, compression, actual, base,
            type == TimestampType.LOG_APPEND_TIME ? NOW + 77 : RecordBatch.NO_TIMESTAMP,
            isIdempotent ? 4_711L : -1L, (short) (isIdempotent ? 3 : -1), sequence, isIdempotent, 9);
        long offset = base;
        boolean hasGaps = count > 2 && random.nextBoolean(); // as compaction leaves them
        for (int i = 0; i < count; i++) {
            long timestamp = magic == 0 ? RecordBatch.NO_TIMESTAMP : NOW + random.nextInt(2_000_000) - 1_000_000;
            builder.appendWithOffset(offset, timestamp, bytes(16), bytes(size), magic == 2 ? headers() : new Header[0]);
            offset += hasGaps ? 1 + random.nextInt(300) : 1;
        }
        ByteBuffer buffer = builder.build().buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        fields.add(new Named(name, bytes));
    }

    /** Null, empty, or some bytes of which half can be compressed. */
    private byte[] bytes(int most) {
        int kind = random.nextInt(8);
        if (kind == 0) {
            return null;
        }
        byte[] bytes = new byte[kind == 1 ? 0 : 1 + random.nextInt(most)];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i % 64 < 32 ? 'a' : random.nextInt(256));
        }
        return bytes;
    }

    private Header[] headers() {
        Header[] headers = new Header[random.nextInt(3) == 0 ? random.nextInt(5) : 0];
        for (int i = 0; i < headers.length; i++) {
            headers[i] = new RecordHeader(random.nextBoolean() ? "trace-é" + i : "", bytes(300));
        }
        return headers;
    }
}
