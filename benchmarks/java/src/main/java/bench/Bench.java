package bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Decodes a corpus with kafka-clients, a round whenever asked, so that rounds of other candidates can come between.
 *
 * <p>Commands, one a line, each answered by one line: {@code load FILE} (the number of frames), {@code check MODE}
 * (a 0 or 1 for each frame: was it understood?), {@code run MODE REPEAT} (JSON: CPU time of this thread and of the
 * whole process in ns, records seen in one repetition).
 */
public final class Bench {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final Decoder decoder = new Decoder();
    private List<Frame> frames = List.of();

    public static void main(String[] arguments) throws Throwable {
        Bench bench = new Bench();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(bench.answer(line.split(" ")));
        }
    }

    private String answer(String[] words) throws Throwable {
        switch (words[0]) {
            case "load" -> {
                frames = Frame.load(Path.of(words[1]));
                return String.valueOf(frames.size());
            }
            case "check" -> {
                return check(Decoder.Mode.valueOf(words[1]));
            }
            case "run" -> {
                return run(Decoder.Mode.valueOf(words[1]), Integer.parseInt(words[2]));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private String check(Decoder.Mode mode) {
        StringBuilder found = new StringBuilder();
        for (Frame frame : frames) {
            try {
                found.append(one(frame, mode) == 0 ? '1' : '0');
            } catch (Throwable e) {
                found.append('0');
            }
        }
        return found.toString();
    }

    private String run(Decoder.Mode mode, int repeat) throws Throwable {
        decoder.records = 0;
        long process = SYSTEM.getProcessCpuTime();
        long thread = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < repeat; i++) {
            for (Frame frame : frames) {
                one(frame, mode);
            }
        }
        thread = THREADS.getCurrentThreadCpuTime() - thread;
        process = SYSTEM.getProcessCpuTime() - process;
        return "{\"thread_ns\":" + thread + ",\"process_ns\":" + process
            + ",\"records\":" + decoder.records / repeat + ",\"seen\":" + decoder.bytesOfJson + "}";
    }

    private int one(Frame frame, Decoder.Mode mode) throws Throwable {
        if (mode == Decoder.Mode.BATCHES) {
            decoder.iterate(MemoryRecords.readableRecords(ByteBuffer.wrap(frame.data())));
            return 0;
        }
        return decoder.decode(frame, mode);
    }
}
