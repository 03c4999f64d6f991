package streamsql;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** from_json, of the messages of a topic above all, by JsonLine; a text that is not plain is left to Spark's own. */
public class JsonMessages extends Rules.Guarded {
    protected LogicalPlan changed(LogicalPlan plan) {
        return (LogicalPlan) plan.transformAllExpressions(new Parsers());
    }

    public static class Parsers extends Rules.Each {
        public Object apply(Object node) {
            if (node.getClass() != JsonToStructs.class) return node;
            JsonToStructs spark = (JsonToStructs) node;
            if (!(spark.dataType() instanceof StructType) || spark.timeZoneId().isEmpty()) return node;
            JSONOptions options = options(spark);
            if (options.encoding().isDefined() || !JsonLine.reads((StructType) spark.dataType(), options)) return node;
            return new Parser(
                spark.schema(), spark.options(), spark.child(), spark.timeZoneId(), spark.variantAllowDuplicateKeys());
        }
    }

    private static JSONOptions options(JsonToStructs from) {
        String text = SQLConf$.MODULE$.get().columnNameOfCorruptRecord();
        return new JSONOptions(from.options(), (String) from.timeZoneId().get(), text);
    }

    /** Spark's expression with another reader of plain texts. */
    public static class Parser extends JsonToStructs {
        private transient JsonLine reader;

        Parser(DataType schema, Map options, Expression child, Option timeZone, boolean duplicates) {
            super(schema, options, child, timeZone, duplicates);
        }

        public Object nullSafeEval(Object json) {
            if (reader == null) {
                StructType columns = (StructType) dataType();
                JSONOptions options = JsonMessages.options(this);
                Seq noFilters = (Seq) Rules.seq(new ArrayList());
                JacksonParser parser = new JacksonParser(JsonLine.parsed(columns, options), options, false, noFilters);
                reader = new JsonLine(columns, parser, new String[0], true);
            }
            UTF8String text = (UTF8String) json;
            boolean plain;
            if (text.getBaseObject() instanceof byte[]) {
                int begin = (int) (text.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
                plain = reader.read((byte[]) text.getBaseObject(), begin, text.numBytes());
            } else {
                plain = reader.read(text.getBytes(), 0, text.numBytes());
            }
            return plain ? values(reader.row) : super.nullSafeEval(json);
        }

        /** A row of its own, as several results may be kept; the texts in it are parts of the message. */
        private static Object values(SpecificInternalRow row) {
            Object[] values = new Object[row.numFields()];
            for (int i = 0; i < values.length; i++) {
                values[i] = row.isNullAt(i) ? null : row.genericGet(i);
            }
            return new GenericInternalRow(values);
        }

        public JsonToStructs withNewChildInternal(Expression child) {
            return new Parser(schema(), options(), child, timeZoneId(), variantAllowDuplicateKeys());
        }

        public TreeNode withNewChildInternal(TreeNode child) {
            return withNewChildInternal((Expression) child);
        }

        /** Spark's own expression is not equal to this one: a node that is equal to the old one would not replace it. */
        public boolean canEqual(Object other) {
            return other instanceof Parser;
        }

        public boolean equals(Object other) {
            return other instanceof Parser && super.equals(other);
        }

        public int hashCode() {
            return super.hashCode();
        }
    }
}
