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
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
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
    protected LogicalPlan changed(LogicalPlan plan) {
        return (LogicalPlan) plan.transformUp(new Relations());
    }

    public static class Relations extends Rules.Each {
        public Object apply(Object node) {
            if (node instanceof LogicalRelation) {
                return read((LogicalRelation) node, new String[0]);
            }
            if (node instanceof Project) {
                LogicalPlan below = ((Project) node).child();
                LogicalPlan lowest = below instanceof Filter ? ((Filter) below).child() : below;
                if (lowest instanceof LogicalRelation) {
                    Set read = new HashSet();
                    expressions((LogicalPlan) node, read);
                    if (below != lowest) expressions(below, read);
                    LogicalPlan relation = read((LogicalRelation) lowest, others(lowest, read));
                    if (relation == lowest) return node;
                    LogicalPlan child = below == lowest ? relation : with(below, relation);
                    return with((LogicalPlan) node, child);
                }
            }
            return node;
        }
    }

    private static LogicalPlan with(LogicalPlan node, LogicalPlan child) {
        return (LogicalPlan) node.withNewChildren(Rules.seq(Arrays.asList(child)));
    }

    private static LogicalPlan read(LogicalRelation node, String[] unread) {
        if (!(node.relation() instanceof HadoopFsRelation)) return node;
        HadoopFsRelation relation = (HadoopFsRelation) node.relation();
        Class format = relation.fileFormat().getClass();
        if (format != JsonFileFormat.class && format != Format.class) return node;
        HadoopFsRelation other = relation.copy(
            relation.location(), relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(),
            new Format(unread), relation.options(), relation.sparkSession());
        return node.copy(other, node.output(), node.catalogTable(), node.isStreaming(), node.stream());
    }

    private static void expressions(LogicalPlan node, Set read) {
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

    private static String[] others(LogicalPlan relation, Set read) {
        Set names = new HashSet();
        for (Iterator all = CollectionConverters.asJava(relation.output()).iterator(); all.hasNext();) {
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
            Function1 reader = reader(session, required, filters, options, hadoop);
            if (reader != null) return reader;
            return super.buildReader(session, data, partitions, required, filters, options, hadoop);
        }

        /** null where Spark's own reader is to read the files. */
        private Function1 reader(
            SparkSession session, StructType required, Seq filters, Map options, Configuration hadoop) {
            try {
                return plainReader(session, required, filters, options, hadoop);
            } catch (Throwable failure) {
                Rules.fellBack(JsonLines.class, failure);
                return null;
            }
        }

        private Function1 plainReader(
            SparkSession session, StructType required, Seq filters, Map options, Configuration hadoop) {
            SQLConf conf = SQLConf$.MODULE$.get();
            JSONOptions json =
                new JSONOptionsInRead(options, conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
            if (!filters.isEmpty() || !plain(json) || !JsonLine.reads(required, json)) return null;
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
