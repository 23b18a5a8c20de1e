package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.Message;

/**
 * Writes frames whose bytes fields carry another message, with the JSON of that message by Kafka's own classes:
 * subscriptions and assignments of the consumer protocol in every version, also newer ones than this release knows,
 * and requests of every api and version in an Envelope.
 *
 * <p>Argument: the gzipped NDJSON file to write.
 */
public final class EmbeddedOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Shape[] SHAPES = {Shape.EMPTY, Shape.GREATEST, Shape.LEAST, Shape.LONG_ARRAYS, Shape.RANDOM};
    private static final short[] NEWER = {1, 7, Short.MAX_VALUE - 3};

    private final Writer out;
    private final List<byte[]> recordSamples = RecordSamples.make();

    private EmbeddedOracle(Writer out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        try (Writer out = new BufferedWriter(new OutputStreamWriter(
                new GZIPOutputStream(new FileOutputStream(arguments[0])), StandardCharsets.UTF_8))) {
            EmbeddedOracle oracle = new EmbeddedOracle(out);
            for (ApiMessageType api : List.of(
                    ApiMessageType.JOIN_GROUP, ApiMessageType.SYNC_GROUP, ApiMessageType.DESCRIBE_GROUPS)) {
                oracle.writeGroups(api, true);
                oracle.writeGroups(api, false);
            }
            for (ApiMessageType api : ApiMessageType.values()) {
                oracle.writeEnvelopes(api);
            }
        }
    }

    private void writeGroups(ApiMessageType api, boolean isRequest) throws Exception {
        int seed = 0;
        int newest = ConsumerProtocolSubscription.HIGHEST_SUPPORTED_VERSION;
        for (int version = api.lowestSupportedVersion(); version <= api.highestSupportedVersion(true); version++) {
            for (int inner = 0; inner <= newest + NEWER.length; inner++) {
                for (Shape shape : SHAPES) {
                    int written = inner <= newest ? inner : newest + NEWER[inner - newest - 1];
                    writeGroup(api, (short) version, isRequest, (short) written, shape, seed++);
                }
            }
        }
    }

    private void writeGroup(ApiMessageType api, short version, boolean isRequest, short inner, Shape shape, int seed)
            throws Exception {
        Class<?> type = (isRequest ? api.newRequest() : api.newResponse()).getClass();
        Random random = new Random(api.apiKey() * 100_000L + seed * 2L + (isRequest ? 1 : 0));
        ObjectNode json = make(type, version, Shape.LEAST, random);
        ArrayNode embedded = JsonNodeFactory.instance.arrayNode();
        fill(json, "", inner, shape, random, embedded);
        write(api, version, isRequest, Wire.fromJson(type, json, version), random, embedded);
    }

    /** Puts a message into every field that carries one, and the protocol type "consumer" where there is a place. */
    private void fill(JsonNode node, String path, short version, Shape shape, Random random, ArrayNode embedded)
            throws Exception {
        if (node.isArray()) {
            for (int i = 0; i < node.size(); i++) {
                fill(node.get(i), path + i + "/", version, shape, random, embedded);
            }
        } else if (node instanceof ObjectNode object) {
            if (object.has("protocolType")) {
                object.put("protocolType", "consumer");
            }
            for (var name : List.of("metadata", "memberMetadata", "assignment", "memberAssignment")) {
                if (object.has(name)) {
                    boolean isSubscription = name.endsWith("etadata");
                    object.set(name, consumerProtocol(isSubscription, path + name, version, shape, random, embedded));
                }
            }
            for (var names = object.fieldNames(); names.hasNext(); ) {
                String name = names.next();
                fill(object.get(name), path + name + "/", version, shape, random, embedded);
            }
        }
    }

    private BinaryNode consumerProtocol(
            boolean isSubscription, String path, short version, Shape shape, Random random, ArrayNode embedded)
            throws Exception {
        Class<?> type = isSubscription ? ConsumerProtocolSubscription.class : ConsumerProtocolAssignment.class;
        short newest = ConsumerProtocolSubscription.HIGHEST_SUPPORTED_VERSION;
        short known = (short) Math.min(version, newest);
        Message message = Wire.fromJson(type, make(type, known, shape, random), known);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(version >> 8);
        bytes.write(version);
        bytes.write(Wire.toBytes(message, known));
        byte[] tail = new byte[version > newest || random.nextInt(8) == 0 ? random.nextInt(20) : 0];
        bytes.write(tail);
        requireReadable(isSubscription, ByteBuffer.wrap(bytes.toByteArray()));
        embedded.addObject().put("path", path).put("name", type.getSimpleName()).put("version", version)
            .put("trailing", tail.length).set("body", Wire.toJson(message, known));
        return new BinaryNode(bytes.toByteArray());
    }

    /** Kafka's own consumer must accept what we expect a decoder to read. */
    private static void requireReadable(boolean isSubscription, ByteBuffer bytes) {
        if (isSubscription) {
            ConsumerProtocol.deserializeSubscription(bytes);
        } else {
            ConsumerProtocol.deserializeAssignment(bytes);
        }
    }

    private void writeEnvelopes(ApiMessageType api) throws Exception {
        for (int each = api.lowestSupportedVersion(); each <= api.highestSupportedVersion(true); each++) {
            short version = (short) each;
            Class<?> type = api.newRequest().getClass(); // fails for an api that this release no longer has
            Random random = new Random(api.apiKey() * 1000L + version);
            Message body = Wire.fromJson(type, make(type, version, Shape.RANDOM, random), version);
            Message header = requestHeader(api, version, random);
            short headerVersion = api.requestHeaderVersion(version);
            ByteArrayOutputStream forwarded = new ByteArrayOutputStream();
            forwarded.write(Wire.toBytes(header, headerVersion));
            forwarded.write(Wire.toBytes(body, version));

            ArrayNode embedded = JsonNodeFactory.instance.arrayNode();
            ObjectNode expected = embedded.addObject().put("path", "requestData")
                .put("name", schemaName(type)).put("version", version).put("trailing", 0);
            expected.set("header", Wire.toJson(header, headerVersion));
            expected.set("body", Wire.toJson(body, version));
            expected.put("api_key", api.apiKey());
            ObjectNode outer = make(ApiMessageType.ENVELOPE.newRequest().getClass(), (short) 0, Shape.RANDOM, random);
            outer.set("requestData", new BinaryNode(forwarded.toByteArray()));
            Message envelope = Wire.fromJson(ApiMessageType.ENVELOPE.newRequest().getClass(), outer, (short) 0);
            write(ApiMessageType.ENVELOPE, (short) 0, true, envelope, random, embedded);
        }
    }

    private ObjectNode make(Class<?> type, short version, Shape shape, Random random) throws IOException {
        Values values = new Values(random, shape, recordSamples);
        return new RandomMessage(Schema.load(schemaName(type)), version, random, shape, values).make();
    }

    private static String schemaName(Class<?> type) {
        return type.getSimpleName().replaceAll("Data$", "");
    }

    private static Message requestHeader(ApiMessageType api, short version, Random random) {
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(api.apiKey()).setRequestApiVersion(version).setCorrelationId(random.nextInt());
        return api.requestHeaderVersion(version) >= 1 ? header.setClientId("client-é") : header;
    }

    private void write(
            ApiMessageType api, short version, boolean isRequest, Message body, Random random, ArrayNode embedded)
            throws Exception {
        Message header = isRequest ? requestHeader(api, version, random)
            : new ResponseHeaderData().setCorrelationId(random.nextInt());
        short headerVersion = isRequest ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version);
        HexFormat hex = HexFormat.of();
        ObjectNode line = JsonNodeFactory.instance.objectNode()
            .put("api_key", api.apiKey()).put("api_name", api.name).put("version", version)
            .put("kind", isRequest ? "request" : "response")
            .put("frame", hex.formatHex(Wire.toBytes(header, headerVersion)) + hex.formatHex(Wire.toBytes(body, version)));
        line.set("embedded", embedded);
        out.write(JSON.writeValueAsString(line));
        out.write('\n');
    }
}
