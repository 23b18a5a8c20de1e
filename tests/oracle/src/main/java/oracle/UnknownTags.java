package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collection;
import java.util.Random;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Puts tagged fields that no schema knows into a message, as a newer client or broker would (KIP-482). */
final class UnknownTags {
    /** Known tags are small; two- and three-byte tags also prove the varint. */
    private static final int[] TAGS = {9_999, 100_000};

    private final Random random;
    private final ArrayNode added = JsonNodeFactory.instance.arrayNode();

    UnknownTags(Random random) {
        this.random = random;
    }

    /** What was added: JSON pointer of the struct, tag, content. */
    ArrayNode added() {
        return added;
    }

    /**
     * Add to a struct and to all structs in it.
     *
     * @param json what the converter writes of this struct: a struct that it leaves out is absent in this version or
     *     has its default, and gets no tags
     */
    void addTo(Message struct, JsonNode json, String pointer) throws IllegalAccessException {
        for (int tag : TAGS) {
            byte[] content = new byte[random.nextInt(150)];
            random.nextBytes(content);
            struct.unknownTaggedFields().add(new RawTaggedField(tag, content));
            added.addObject().put("pointer", pointer).put("tag", tag).set("content", new BinaryNode(content));
        }
        for (Field field : struct.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || !json.has(field.getName())) {
                continue;
            }
            field.setAccessible(true);
            JsonNode value = json.get(field.getName());
            String below = pointer + "/" + field.getName();
            if (value.isObject()) {
                addTo((Message) field.get(struct), value, below);
            } else if (value.isArray() && field.get(struct) instanceof Collection<?> elements) {
                addToElements(elements, value, below);
            }
        }
    }

    private void addToElements(Collection<?> elements, JsonNode array, String pointer) throws IllegalAccessException {
        int index = 0;
        for (Object element : elements) {
            if (element instanceof Message struct) {
                addTo(struct, array.get(index), pointer + "/" + index);
            }
            index++;
        }
    }
}
