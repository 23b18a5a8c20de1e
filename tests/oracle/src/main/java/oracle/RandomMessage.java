package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Makes a random message of one schema and version, as the JSON that Kafka's converter reads. */
final class RandomMessage {
    private static final int LONG_ARRAY = 130;
    private static final int DEEP = 4;

    private final Schema schema;
    private final int version;
    private final Random random;
    private final Shape shape;
    private final Values values;
    private final List<byte[]> recordFields = new ArrayList<>();

    RandomMessage(Schema schema, int version, Random random, Shape shape, Values values) {
        this.schema = schema;
        this.version = version;
        this.random = random;
        this.shape = shape;
        this.values = values;
    }

    ObjectNode make() {
        return struct(schema.fields(), 0);
    }

    /** Content of the records fields that {@link #make} put into the message, in the order of the fields. */
    List<byte[]> recordFields() {
        return recordFields;
    }

    private ObjectNode struct(JsonNode fields, int depth) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        for (JsonNode field : fields) {
            boolean isLeftOut = Schema.holds(field, "taggedVersions", version) && !hasTagged();
            if (Schema.holds(field, "versions", version) && !isLeftOut) {
                object.set(Schema.jsonName(field), value(field, depth));
            }
        }
        return object;
    }

    private boolean hasTagged() {
        return shape.isExtreme() ? shape != Shape.EMPTY : random.nextInt(3) > 0;
    }

    private JsonNode value(JsonNode field, int depth) {
        if (Schema.holds(field, "nullableVersions", version) && isNull()) {
            return NullNode.instance;
        }
        if (!Schema.isArray(field)) {
            return element(field, depth + 1);
        }
        ArrayNode array = JsonNodeFactory.instance.arrayNode();
        int size = arraySize(depth);
        for (int i = 0; i < size; i++) {
            array.add(element(field, size == LONG_ARRAY ? DEEP : depth + 1));
        }
        return array;
    }

    private boolean isNull() {
        return shape.isExtreme() ? shape == Shape.EMPTY : random.nextInt(4) == 0;
    }

    /** Deep arrays are short: a message nests up to seven levels, and its size is the product of them. */
    private int arraySize(int depth) {
        if (shape == Shape.EMPTY) {
            return 0;
        }
        if (shape.isExtreme()) {
            return depth < DEEP ? 2 : 1;
        }
        if (shape == Shape.LONG_ARRAYS && depth == 0 && random.nextBoolean()) {
            return LONG_ARRAY;
        }
        return random.nextInt(depth < DEEP ? 4 : 2);
    }

    private JsonNode element(JsonNode field, int depth) {
        JsonNode primitive = values.of(Schema.elementType(field));
        if (primitive == null) {
            return struct(schema.fieldsOf(field), depth);
        }
        if (Schema.elementType(field).equals("records")) {
            recordFields.add(((BinaryNode) primitive).binaryValue());
        }
        return primitive;
    }
}
