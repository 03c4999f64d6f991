package streamsql;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, which sets permissions without starting a process.
 *
 * Without Hadoop's native library, which PySpark does not have, RawLocalFileSystem runs `chmod` for each
 * file and folder that it creates: ten times in a micro-batch, 3 to 10 ms each.
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
    }
}
