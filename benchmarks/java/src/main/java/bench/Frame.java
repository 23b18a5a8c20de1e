package bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** One entry of a corpus file: int32 length, int8 direction (1: response), int16 api key, int16 version, bytes. */
record Frame(boolean isResponse, short apiKey, short version, byte[] data) {
    static List<Frame> load(Path file) throws IOException {
        List<Frame> frames = new ArrayList<>();
        ByteBuffer buffer = ByteBuffer.wrap(Files.readAllBytes(file));
        while (buffer.hasRemaining()) {
            byte[] data = new byte[buffer.getInt()];
            boolean isResponse = buffer.get() == 1;
            short apiKey = buffer.getShort();
            short version = buffer.getShort();
            buffer.get(data);
            frames.add(new Frame(isResponse, apiKey, version, data));
        }
        return frames;
    }
}
