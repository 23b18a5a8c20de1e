package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;

/** Random values of Kafka's primitive types, in the JSON that Kafka's converters read. */
final class Values {
    /** Above 16383 a compact length takes three bytes. */
    private static final int LONG_BYTES = 17_000;

    private final Random random;
    private final Shape shape;
    private final List<byte[]> recordSamples;
    private final JsonNodeFactory json = JsonNodeFactory.instance;

    Values(Random random, Shape shape, List<byte[]> recordSamples) {
        this.random = random;
        this.shape = shape;
        this.recordSamples = recordSamples;
    }

    /** A value of a primitive type; null if {@code type} is a struct. */
    JsonNode of(String type) {
        return switch (type) {
            case "bool" -> BooleanNode.valueOf(shape.isExtreme() ? shape == Shape.GREATEST : random.nextBoolean());
            case "int8" -> json.numberNode((short) signed(8));
            case "int16" -> json.numberNode((short) signed(16));
            case "uint16" -> json.numberNode((int) unsigned(16));
            case "int32" -> json.numberNode((int) signed(32));
            case "uint32" -> json.numberNode(unsigned(32));
            case "int64" -> json.numberNode(signed(64));
            case "float64" -> json.numberNode(float64());
            case "string" -> json.textNode(string());
            case "uuid" -> json.textNode(uuid().toString());
            case "bytes" -> new BinaryNode(bytes());
            case "records" -> new BinaryNode(records());
            default -> null;
        };
    }

    int int32() {
        return (int) signed(32);
    }

    private long signed(int bits) {
        long greatest = Long.MAX_VALUE >>> (64 - bits);
        return switch (shape) {
            case EMPTY -> 0;
            case GREATEST -> greatest;
            case LEAST -> -greatest - 1;
            default -> switch (random.nextInt(6)) {
                case 0 -> 0;
                case 1 -> -1;
                case 2 -> greatest;
                case 3 -> -greatest - 1;
                default -> random.nextLong() >> (64 - bits + random.nextInt(bits));
            };
        };
    }

    private long unsigned(int bits) {
        long greatest = (1L << bits) - 1;
        return switch (shape) {
            case EMPTY, LEAST -> 0;
            case GREATEST -> greatest;
            default -> random.nextInt(4) == 0 ? greatest : random.nextLong() & greatest;
        };
    }

    private double float64() {
        return switch (shape) {
            case EMPTY -> 0.0;
            case GREATEST -> Double.MAX_VALUE;
            case LEAST -> -Double.MIN_VALUE;
            default -> random.nextGaussian() * 1e6;
        };
    }

    private String string() {
        return switch (shape) {
            case EMPTY -> "";
            case GREATEST -> "héllo-\u4e16\u754c-\ud83d\ude00-\u0000\n\"\\".repeat(12);
            case LEAST -> "x";
            default -> switch (random.nextInt(8)) {
                case 0 -> "";
                case 1 -> letters(120 + random.nextInt(200));
                case 2 -> "héllo-\u4e16\u754c-\ud83d\ude00-" + random.nextInt(100);
                default -> letters(1 + random.nextInt(14));
            };
        };
    }

    private String letters(int length) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append((char) ('!' + random.nextInt('~' - '!' + 1)));
        }
        return text.toString();
    }

    private Uuid uuid() {
        return switch (shape) {
            case EMPTY -> Uuid.ZERO_UUID;
            case GREATEST -> new Uuid(-1, -1);
            case LEAST -> new Uuid(Long.MIN_VALUE, 0);
            default -> new Uuid(random.nextLong(), random.nextLong());
        };
    }

    private byte[] bytes() {
        byte[] bytes = new byte[switch (shape) {
            case EMPTY -> 0;
            case GREATEST -> LONG_BYTES;
            case LEAST -> 1;
            default -> random.nextInt(4) == 0 ? 0 : random.nextInt(180);
        }];
        if (shape == Shape.GREATEST) {
            Arrays.fill(bytes, (byte) 0xff); // so many random bytes would not compress
        } else {
            random.nextBytes(bytes);
        }
        return bytes;
    }

    private byte[] records() {
        return shape == Shape.EMPTY ? new byte[0] : recordSamples.get(random.nextInt(recordSamples.size()));
    }
}
