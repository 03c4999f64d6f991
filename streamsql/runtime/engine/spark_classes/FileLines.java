package streamsql;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.datasources.HadoopFileLinesReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;

/**
 * The lines of a file, those that Hadoop's reader gives: ended by \n, \r or \r\n, without a byte order mark. A file
 * that is read whole is split in a buffer, where the line stays until the next one; others are left to Hadoop. Of a file
 * that has grown since it was listed, the last line is the one that begins at the listed length, as Hadoop reads it.
 */
final class FileLines implements TaskCompletionListener {
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGHS = 0x8080808080808080L;
    private static final String[] PLAIN = {".json", ".jsonl", ".ndjson", ".txt", ".log"};

    /** The current line is `length` bytes of `bytes` from `begin`. */
    byte[] bytes = new byte[1 << 18];
    int begin;
    int length;

    private final HadoopFileLinesReader hadoop;
    private final InputStream stream;
    private final long end;
    private long before; // the bytes of the file that are no longer in the buffer
    private int next;
    private int filled;
    private boolean ended;

    FileLines(PartitionedFile file, Option separator, Configuration conf) throws IOException {
        boolean whole = file.start() == 0 && file.length() == file.fileSize() && separator.isEmpty();
        Path path = file.toPath();
        hadoop = whole && plain(path.getName()) ? null : new HadoopFileLinesReader(file, separator, conf);
        stream = hadoop == null ? path.getFileSystem(conf).open(path) : null;
        end = file.length();
        if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener(this);
        if (stream != null) skipMark();
    }

    /** Whether no codec of Hadoop takes a file for compressed. */
    private static boolean plain(String name) {
        for (int i = 0; i < PLAIN.length; i++) {
            if (name.endsWith(PLAIN[i])) return true;
        }
        return false;
    }

    private void skipMark() throws IOException {
        while (filled < 3 && fill());
        if (filled >= 3 && bytes[0] == (byte) 0xEF && bytes[1] == (byte) 0xBB && bytes[2] == (byte) 0xBF) next = 3;
    }

    /** Goes to the next line. Returns whether there is one. */
    boolean advance() throws IOException {
        if (hadoop != null) {
            if (!hadoop.hasNext()) return false;
            Text line = (Text) hadoop.next();
            bytes = line.getBytes();
            length = line.getLength();
            return true;
        }
        if (before + next > end || (next >= filled && !fill())) return false;
        int at = next;
        for (;;) {
            at = terminator(at);
            if (at < filled || ended) break;
            int read = at - next; // the rest of the line is not there yet
            fill();
            at = next + read;
        }
        begin = next;
        length = at - begin;
        next = at < filled ? at + 1 : at;
        if (at < filled && bytes[at] == '\r') {
            if (next >= filled) fillBehind();
            if (next < filled && bytes[next] == '\n') next++;
        }
        return true;
    }

    /** The place of the first \n or \r from here, or the end of what is read. */
    private int terminator(int at) {
        while (at + 8 <= filled) {
            long eight = Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at);
            long newline = eight ^ (ONES * '\n');
            long carriage = eight ^ (ONES * '\r');
            if (((((newline - ONES) & ~newline) | ((carriage - ONES) & ~carriage)) & HIGHS) != 0) break;
            at += 8;
        }
        while (at < filled && bytes[at] != '\n' && bytes[at] != '\r') at++;
        return at;
    }

    /** Reads more behind what is not used yet, which moves to the front. Returns whether there was more. */
    private boolean fill() throws IOException {
        if (next > 0) {
            System.arraycopy(bytes, next, bytes, 0, filled - next);
            before += next;
            filled -= next;
            next = 0;
        }
        return more();
    }

    /** Reads more behind a line that must stay where it is. */
    private void fillBehind() throws IOException {
        if (filled == bytes.length) bytes = Arrays.copyOf(bytes, bytes.length * 2);
        more();
    }

    private boolean more() throws IOException {
        if (filled == bytes.length) bytes = Arrays.copyOf(bytes, bytes.length * 2);
        int count = ended ? -1 : stream.read(bytes, filled, bytes.length - filled);
        if (count < 0) ended = true;
        else filled += count;
        return count > 0;
    }

    public void onTaskCompletion(TaskContext context) {
        try {
            if (hadoop != null) hadoop.close();
            else stream.close();
        } catch (IOException closed) {
            // nothing is written to it
        }
    }
}
