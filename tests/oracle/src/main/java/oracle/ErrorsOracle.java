package oracle;

import java.io.FileOutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.protocol.Errors;

/** Writes every error code of this release with its name. Argument: the gzipped NDJSON file to write. */
public final class ErrorsOracle {
    private ErrorsOracle() {}

    public static void main(String[] arguments) throws Exception {
        try (Writer out = new OutputStreamWriter(
                new GZIPOutputStream(new FileOutputStream(arguments[0])), StandardCharsets.UTF_8)) {
            for (Errors error : Errors.values()) {
                out.write("{\"code\":" + error.code() + ",\"name\":\"" + error.name() + "\"}\n");
            }
        }
    }
}
