package streamsql;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, which sets permissions without starting a process, and lists folders faster.
 *
 * Without Hadoop's native library, which PySpark does not have, RawLocalFileSystem runs `chmod` for each
 * file and folder that it creates: ten times in a micro-batch, 3 to 10 ms each. For each file in a folder it
 * asks the system four times, and parses its path six times. Spark lists the logs of a checkpoint six times
 * when a query resumes, and the folder of a file source for each micro-batch.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) { // java.nio has no name for it
                super.setPermission(path, permission);
                return;
            }
            String text = permission.getUserAction().SYMBOL
                + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            try {
                Files.setPosixFilePermissions(
                    this.pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
            } catch (UnsupportedOperationException noPosix) {
                super.setPermission(path, permission);
            }
        }

        public FileStatus[] listStatus(Path path) throws IOException {
            File folder = this.pathToFile(path);
            String[] names = folder.list();
            if (names == null) { // a file, or nothing
                return super.listStatus(path);
            }
            String above = new Path(folder.getPath())
                .makeQualified(this.getUri(), this.getWorkingDirectory()).toUri().toString();
            if (!above.endsWith("/")) {
                above += "/";
            }
            long block = this.getDefaultBlockSize(path);
            boolean isLog = isLog(folder);
            FileStatus[] statuses = new FileStatus[names.length];
            int count = 0;
            for (int i = 0; i < names.length; i++) {
                try {
                    if (isPlain(names[i])) {
                        Path there = new Path(URI.create(above + names[i]));
                        statuses[count] = isLog && isNumber(names[i])
                            ? (FileStatus) new Entry(this, block, there)
                            : new Status(this, attributes(new File(folder, names[i])), block, there);
                    } else {
                        statuses[count] =
                            this.getFileStatus(new Path(path, new Path(null, null, names[i])));
                    }
                    count++;
                } catch (NoSuchFileException removed) { // meanwhile, or what a link names
                    continue;
                } catch (FileNotFoundException removed) {
                    continue;
                }
            }
            return count == names.length ? statuses : (FileStatus[]) Arrays.copyOf(statuses, count);
        }

        /** Whether it is a log of micro-batches in a checkpoint, of whose files Spark reads only the names. */
        private static boolean isLog(File folder) {
            return (folder.getName().equals("offsets") || folder.getName().equals("commits"))
                && new File(folder.getParentFile(), "metadata").isFile();
        }

        private static boolean isNumber(String name) {
            for (int i = 0; i < name.length(); i++) {
                if (name.charAt(i) < '0' || name.charAt(i) > '9') {
                    return false;
                }
            }
            return true;
        }

        /** Whether a name is the same in a URI. */
        private static boolean isPlain(String name) {
            for (int i = 0; i < name.length(); i++) {
                char c = name.charAt(i);
                if (!(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
                    || c == '.' || c == '-' || c == '_' || c == '=')) {
                    return false;
                }
            }
            return true;
        }
    }

    private static BasicFileAttributes attributes(File file) throws IOException {
        return (BasicFileAttributes) Files.readAttributes(
            file.toPath(), BasicFileAttributes.class, new LinkOption[0]);
    }

    /** What is known of a file; its owner and permissions are looked up when they are asked for. */
    private static class Status extends FileStatus {
        private final transient Raw files;
        private transient FileStatus whole;

        Status(Raw files, BasicFileAttributes known, long block, Path path) {
            super(known.size(), known.isDirectory(), 1, block, known.lastModifiedTime().toMillis(),
                known.lastAccessTime().toMillis(), null, null, null, path);
            this.files = files;
        }

        Status(Raw files, long block, Path path) {
            super(0L, false, 1, block, 0L, path);
            this.files = files;
        }

        public FsPermission getPermission() {
            return this.whole().getPermission();
        }

        public String getOwner() {
            return this.whole().getOwner();
        }

        public String getGroup() {
            return this.whole().getGroup();
        }

        /** Without what is looked up for a file that is gone, and after it was sent to another process. */
        protected synchronized FileStatus whole() {
            if (this.whole == null) {
                try {
                    this.whole = this.files == null
                        ? new FileStatus() : this.files.getFileStatus(this.getPath());
                } catch (IOException gone) {
                    this.whole = new FileStatus();
                }
            }
            return this.whole;
        }
    }

    /** A micro-batch in a log; what else than its name is known of it is looked up when it is asked for. */
    private static class Entry extends Status {
        Entry(Raw files, long block, Path path) {
            super(files, block, path);
        }

        public long getLen() {
            return this.whole().getLen();
        }

        public long getModificationTime() {
            return this.whole().getModificationTime();
        }

        public long getAccessTime() {
            return this.whole().getAccessTime();
        }
    }
}
