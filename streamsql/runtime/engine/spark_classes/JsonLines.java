package streamsql;

import com.fasterxml.jackson.core.JsonFactory;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.json.CreateJacksonParser$;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JSONOptionsInRead;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.SerializableConfiguration$;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/**
 * JSON files are read line by line by JsonLine, which reads bytes where Spark makes tokens, texts and converters, and
 * leaves each line that is not plain to Spark's own parser. Of columns of which only whether they are NULL is asked,
 * as for the count of malformed rows, no text is kept.
 */
public class JsonLines extends Rules.Guarded {
    protected String setting() {
        return "spark.streamsql.jsonLines";
    }

    protected TreeNode changed(TreeNode plan) {
        return Rules.has(plan, FileSourceScanExec.class) ? ((SparkPlan) plan).transformUp(new Scans()) : plan;
    }

    public static class Scans extends Rules.Each {
        public Object apply(Object node) {
            if (node instanceof FileSourceScanExec) {
                return scan((FileSourceScanExec) node, new String[0]);
            }
            if (node instanceof ProjectExec) {
                SparkPlan below = ((ProjectExec) node).child();
                SparkPlan lowest = below instanceof FilterExec ? ((FilterExec) below).child() : below;
                if (lowest instanceof FileSourceScanExec) {
                    Set read = new HashSet();
                    expressions((SparkPlan) node, read);
                    if (below != lowest) expressions(below, read);
                    SparkPlan scan = scan((FileSourceScanExec) lowest, others(lowest, read));
                    SparkPlan child = below == lowest ? scan : (SparkPlan) Rules.with(below, Arrays.asList(scan));
                    return Rules.with((SparkPlan) node, Arrays.asList(child));
                }
            }
            return node;
        }
    }

    private static SparkPlan scan(FileSourceScanExec scan, String[] unread) {
        HadoopFsRelation relation = scan.relation();
        Class format = relation.fileFormat().getClass();
        if (format != JsonFileFormat.class && format != Format.class) return scan;
        HadoopFsRelation other = relation.copy(
            relation.location(), relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(),
            new Format(unread), relation.options(), relation.sparkSession());
        return scan.copy(
            other, scan.stream(), scan.output(), scan.requiredSchema(), scan.partitionFilters(),
            scan.optionalBucketSet(), scan.optionalNumCoalescedBuckets(), scan.dataFilters(),
            scan.tableIdentifier(), scan.disableBucketedScan(), scan.copy$default$11());
    }

    private static void expressions(SparkPlan node, Set read) {
        for (Iterator all = CollectionConverters.asJava(node.expressions()).iterator(); all.hasNext();) {
            values((TreeNode) all.next(), read);
        }
    }

    /** The columns whose values an expression reads: not those that are only tested for NULL. */
    private static void values(TreeNode expression, Set read) {
        if (expression instanceof AttributeReference) read.add(((AttributeReference) expression).exprId());
        boolean tested = expression instanceof IsNull || expression instanceof IsNotNull;
        for (Iterator all = CollectionConverters.asJava(expression.children()).iterator(); all.hasNext();) {
            TreeNode child = (TreeNode) all.next();
            if (!tested || !(child instanceof AttributeReference)) values(child, read);
        }
    }

    private static String[] others(SparkPlan scan, Set read) {
        Set names = new HashSet();
        for (Iterator all = CollectionConverters.asJava(scan.output()).iterator(); all.hasNext();) {
            Attribute column = (Attribute) all.next();
            if (!read.contains(column.exprId())) names.add(column.name());
        }
        String[] sorted = (String[]) names.toArray(new String[0]);
        Arrays.sort(sorted);
        return sorted;
    }

    /** Spark's format for JSON files with another reader. */
    public static class Format extends JsonFileFormat {
        private final String[] unread;

        Format(String[] unread) {
            this.unread = unread;
        }

        public Function1 buildReader(
            SparkSession session, StructType data, StructType partitions, StructType required, Seq filters,
            Map options, Configuration hadoop) {
            SQLConf conf = SQLConf$.MODULE$.get();
            JSONOptions json =
                new JSONOptionsInRead(options, conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
            if (!filters.isEmpty() || !plain(json) || !JsonLine.reads(required, json)) {
                return super.buildReader(session, data, partitions, required, filters, options, hadoop);
            }
            Broadcast kept = SerializableConfiguration$.MODULE$.broadcast(session.sparkContext(), hadoop);
            return new Reader(required, json, unread, kept);
        }

        private static boolean plain(JSONOptions json) {
            return !json.multiLine() && json.encoding().isEmpty() && json.explodeEmbeddedArray().isEmpty()
                && !json.archiveFormatEnabled();
        }

        /** Spark's own format is not equal to this one: a node that is equal to the old one would not replace it. */
        public boolean canEqual(Object other) {
            return other instanceof Format;
        }

        public boolean equals(Object other) {
            return other instanceof Format && Arrays.equals(unread, ((Format) other).unread);
        }

        public int hashCode() {
            return Arrays.hashCode(unread);
        }
    }

    /** From a file to the iterator over its rows. */
    public static class Reader extends AbstractFunction1 implements Serializable {
        private final StructType required;
        private final JSONOptions options;
        private final String[] unread;
        private final Broadcast hadoop;

        Reader(StructType required, JSONOptions options, String[] unread, Broadcast hadoop) {
            this.required = required;
            this.options = options;
            this.unread = unread;
            this.hadoop = hadoop;
        }

        public Object apply(Object file) {
            Configuration conf = ((SerializableConfiguration) hadoop.value()).value();
            FileLines lines;
            try {
                lines = new FileLines((PartitionedFile) file, options.lineSeparatorInRead(), conf);
            } catch (IOException cause) {
                throw Rules.unchecked(cause);
            }
            JacksonParser parser = new JacksonParser(
                JsonLine.parsed(required, options), options, true, (Seq) Rules.seq(new ArrayList()));
            FailureSafeParser safe = new FailureSafeParser(
                new SparkParser(parser), options.parseMode(), required, options.columnNameOfCorruptRecord());
            Iterator rows = new Rows(lines, new JsonLine(required, parser, unread, false), safe);
            return CollectionConverters.asScala(rows);
        }
    }

    /** Java's, not Scala's: the many methods of that one would stand in the class in an order that differs. */
    private static final class Rows implements Iterator {
        private final FileLines lines;
        private final Text text = new Text();
        private final JsonLine reader;
        private final FailureSafeParser safe;
        private scala.collection.Iterator ofSpark;
        private Object row;
        private int plain;
        private int others;

        Rows(FileLines lines, JsonLine reader, FailureSafeParser safe) {
            this.lines = lines;
            this.reader = reader;
            this.safe = safe;
        }

        public boolean hasNext() {
            while (row == null) {
                if (ofSpark != null) {
                    if (ofSpark.hasNext()) {
                        row = ofSpark.next();
                        return true;
                    }
                    ofSpark = null;
                }
                try {
                    if (!lines.advance()) return false;
                } catch (IOException cause) {
                    throw Rules.unchecked(cause);
                }
                if (others <= 100 + plain && reader.read(lines.bytes, lines.begin, lines.length)) {
                    plain++;
                    row = reader.row;
                } else {
                    others++;
                    text.set(lines.bytes, lines.begin, lines.length);
                    ofSpark = safe.parse(text);
                }
            }
            return true;
        }

        public Object next() {
            if (!hasNext()) throw new NoSuchElementException();
            Object next = row;
            row = null;
            return next;
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }
    }

    private static final class SparkParser extends AbstractFunction1 {
        private final JacksonParser parser;

        SparkParser(JacksonParser parser) {
            this.parser = parser;
        }

        public Object apply(Object line) {
            return parser.parse(line, new OfText(), new Literally());
        }
    }

    private static final class OfText extends AbstractFunction2 {
        public Object apply(Object factory, Object line) {
            return CreateJacksonParser$.MODULE$.text((JsonFactory) factory, (Text) line);
        }
    }

    private static final class Literally extends AbstractFunction1 {
        public Object apply(Object line) {
            return UTF8String.fromBytes(((Text) line).getBytes(), 0, ((Text) line).getLength());
        }
    }
}
