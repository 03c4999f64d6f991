package streamsql;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.util.Utils;
import scala.Function2;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Writes partitions of byte arrays into files, one each, for a reader on the same machine. Spark itself hands a
 * partition over as a whole, so that one with many rows fills the memory.
 */
public class RowSpool {
    /** A new folder for the files, only for this user; it is deleted with the JVM at the latest. */
    public static String folder(SparkContext context) {
        return Utils.createTempDir(Utils.getLocalDir(context.conf()), "rows").getPath();
    }

    /** Write each partition into the file of its number: the length of each array (four bytes), then the array. */
    public static void write(SparkContext context, RDD rows, List partitions, String folder) {
        ClassTag any = ClassTag$.MODULE$.apply(Object.class);
        context.runJob(rows, (Function2) new Partition(folder), Rules.seq(partitions), any);
    }

    public static class Partition extends AbstractFunction2 implements Serializable {
        private final String folder;

        Partition(String folder) {
            this.folder = folder;
        }

        public Object apply(Object task, Object arrays) {
            TaskContext context = (TaskContext) task;
            try {
                File file = new File(folder, String.valueOf(context.partitionId()));
                DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file), 65536));
                try {
                    for (Iterator all = (Iterator) arrays; all.hasNext();) {
                        context.killTaskIfInterrupted();
                        byte[] array = (byte[]) all.next();
                        out.writeInt(array.length);
                        out.write(array);
                    }
                } finally {
                    out.close();
                }
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
            return Boolean.TRUE;
        }
    }
}
