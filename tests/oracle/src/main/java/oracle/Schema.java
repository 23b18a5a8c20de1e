package oracle;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;

/** One of the message definitions that the kafka-clients jar carries. */
final class Schema {
    private static final ObjectMapper READER = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);

    private final JsonNode root;
    private final Map<String, JsonNode> structs = new HashMap<>();

    private Schema(JsonNode root) {
        this.root = root;
        for (JsonNode struct : root.path("commonStructs")) {
            structs.put(struct.get("name").asText(), struct.get("fields"));
            collectStructs(struct.get("fields"));
        }
        collectStructs(fields());
    }

    static Schema load(String message) throws IOException {
        String path = "common/message/" + message + ".json";
        try (InputStream in = Schema.class.getClassLoader().getResourceAsStream(path)) {
            if (in == null) {
                throw new FileNotFoundException(path);
            }
            return new Schema(READER.readTree(in));
        }
    }

    JsonNode fields() {
        return root.get("fields");
    }

    boolean isFlexible(int version) {
        return contains(root.get("flexibleVersions").asText(), version);
    }

    /** The fields of a struct: written at the field itself, or elsewhere under the same name. */
    JsonNode fieldsOf(JsonNode field) {
        return field.has("fields") ? field.get("fields") : structs.get(elementType(field));
    }

    /** Whether {@code version} is in the range under {@code key} ("versions", "nullableVersions" …). */
    static boolean holds(JsonNode field, String key, int version) {
        return field.has(key) && contains(field.get(key).asText(), version);
    }

    static boolean isArray(JsonNode field) {
        return field.get("type").asText().startsWith("[]");
    }

    static String elementType(JsonNode field) {
        String type = field.get("type").asText();
        return type.startsWith("[]") ? type.substring(2) : type;
    }

    /** Schemas write names as classes are called; messages in JSON begin them with a small letter. */
    static String jsonName(JsonNode field) {
        String name = field.get("name").asText();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }

    private void collectStructs(JsonNode fields) {
        for (JsonNode field : fields) {
            if (field.has("fields")) {
                structs.put(elementType(field), field.get("fields"));
                collectStructs(field.get("fields"));
            }
        }
    }

    /** Kafka's notation of versions: {@code none}, {@code 3}, {@code 0-4}, {@code 2+}. */
    private static boolean contains(String versions, int version) {
        if (versions.equals("none")) {
            return false;
        }
        if (versions.endsWith("+")) {
            return version >= Integer.parseInt(versions.substring(0, versions.length() - 1));
        }
        String[] ends = versions.split("-");
        return version >= Integer.parseInt(ends[0]) && version <= Integer.parseInt(ends[ends.length - 1]);
    }
}
