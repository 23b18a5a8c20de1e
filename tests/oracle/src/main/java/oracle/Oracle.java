package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.Message;

/**
 * Writes random valid frames of every api, version and kind that this release of Kafka knows, each with the JSON of
 * its header and body by Kafka's own classes: what a decoder has to give.
 *
 * <p>Arguments: the gzipped NDJSON file to write, and how many frames to make of each api, version and kind. The same
 * arguments give the same file.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** The newest request header; an unknown tag needs a place, which header 2 and response header 1 have. */
    private static final int FLEXIBLE_REQUEST_HEADER = 2;

    private final Writer out;
    private final int seeds;
    private final List<byte[]> recordSamples = RecordSamples.make();

    private Oracle(Writer out, int seeds) {
        this.out = out;
        this.seeds = seeds;
    }

    public static void main(String[] arguments) throws Exception {
        try (Writer out = new BufferedWriter(new OutputStreamWriter(
                new GZIPOutputStream(new FileOutputStream(arguments[0])), StandardCharsets.UTF_8))) {
            Oracle oracle = new Oracle(out, Integer.parseInt(arguments[1]));
            for (ApiMessageType api : ApiMessageType.values()) {
                oracle.writeApi(api);
            }
        }
    }

    private void writeApi(ApiMessageType api) throws Exception {
        int newest = api.highestSupportedVersion(true); // with versions that are not stable yet
        for (int version = api.lowestSupportedVersion(); version <= newest; version++) {
            for (int seed = 0; seed < seeds; seed++) {
                writeFrame(api, (short) version, seed, true);
                writeFrame(api, (short) version, seed, false);
            }
        }
    }

    private void writeFrame(ApiMessageType api, short version, int seed, boolean isRequest) throws Exception {
        Class<?> type = (isRequest ? api.newRequest() : api.newResponse()).getClass();
        Schema schema = Schema.load(type.getSimpleName().replaceAll("Data$", ""));
        Shape shape = Shape.of(seed);
        Random random = new Random((api.apiKey() * 1000L + version) * 1000 + seed * 2L + (isRequest ? 1 : 0));
        Values values = new Values(random, shape, recordSamples);
        RandomMessage maker = new RandomMessage(schema, version, random, shape, values);

        Message body = Wire.fromJson(type, maker.make(), version);
        Message header = isRequest ? requestHeader(api, version, seed, values) : responseHeader(values);
        short headerVersion = isRequest ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version);
        JsonNode bodyJson = Wire.toJson(body, version);
        JsonNode headerJson = Wire.toJson(header, headerVersion);

        ObjectNode line = JsonNodeFactory.instance.objectNode()
            .put("api_key", api.apiKey()).put("api_name", api.name).put("version", version)
            .put("kind", isRequest ? "request" : "response").put("shape", shape.name()).put("seed", seed);
        if (shape == Shape.UNKNOWN_TAGS) {
            if (schema.isFlexible(version)) {
                line.set("body_tags", addTags(body, bodyJson, random));
                bodyJson = Wire.toJson(body, version); // a default struct with tags in it is no longer a default
            }
            if (headerVersion >= (isRequest ? FLEXIBLE_REQUEST_HEADER : 1)) {
                line.set("header_tags", addTags(header, headerJson, random));
            }
        }
        byte[] bodyBytes = Wire.toBytes(body, version);
        requireRoundTrip(type, bodyBytes, version, bodyJson);
        HexFormat hex = HexFormat.of();
        line.put("frame", hex.formatHex(Wire.toBytes(header, headerVersion)) + hex.formatHex(bodyBytes));
        line.set("header", headerJson);
        line.set("body", bodyJson);
        line.set("records", recordFacts(maker));
        out.write(JSON.writeValueAsString(line));
        out.write('\n');
    }

    private static Message requestHeader(ApiMessageType api, short version, int seed, Values values) {
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(api.apiKey()).setRequestApiVersion(version).setCorrelationId(values.int32());
        if (api.requestHeaderVersion(version) >= 1) {
            header.setClientId(seed % 4 == 0 ? null : seed % 4 == 1 ? "" : "client-é-" + seed);
        }
        return header;
    }

    private static Message responseHeader(Values values) {
        return new ResponseHeaderData().setCorrelationId(values.int32());
    }

    private static ArrayNode addTags(Message message, JsonNode json, Random random) throws IllegalAccessException {
        UnknownTags tags = new UnknownTags(random);
        tags.addTo(message, json, "");
        return tags.added();
    }

    private static ArrayNode recordFacts(RandomMessage maker) {
        ArrayNode facts = JsonNodeFactory.instance.arrayNode();
        maker.recordFields().forEach(field -> facts.add(BatchFacts.of(field)));
        return facts;
    }

    /** Guards against a mistake of ours: what Kafka reads back must be what it wrote. */
    private static void requireRoundTrip(Class<?> type, byte[] bytes, short version, JsonNode json)
            throws ReflectiveOperationException, IOException {
        if (!Wire.toJson(Wire.fromBytes(type, bytes, version), version).equals(json)) {
            throw new IllegalStateException(type.getSimpleName() + " v" + version + " does not survive a round trip");
        }
    }
}
