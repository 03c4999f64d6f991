package streamsql;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.LeafExpression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode$;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.TimestampType$;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * The current time in the plan of a micro-batch. Spark writes it as a number into the code that it generates, so that
 * the code of each micro-batch is another one and is compiled anew. Here the code has a reference to it instead, and
 * the compiled class is found in Spark's cache. It cannot be told from other times and large numbers, which get one, too.
 */
public class CurrentTimes extends Rules.Guarded {
    /** Whole numbers from here on may be times: the optimizer computes unix_millis(now()). */
    private static final long LARGE = 1L << 40;

    protected TreeNode changed(TreeNode plan) {
        return computes((SparkPlan) plan) ? plan.transformUp(new Nodes()) : plan;
    }

    /** Whether a plan computes with the current time. */
    private static boolean computes(SparkPlan plan) {
        boolean found = isPlain(plan) && plan.expressions().exists(new Times());
        for (Iterator all = plan.children().iterator(); !found && all.hasNext();) {
            found = computes((SparkPlan) all.next());
        }
        return found;
    }

    /** A scan, for one, hands its filters to the reader, which knows literals only. */
    private static boolean isPlain(Object node) {
        return node instanceof ProjectExec || node instanceof FilterExec;
    }

    private static boolean isTime(Object node) {
        if (node.getClass() != Literal.class) return false;
        Literal literal = (Literal) node;
        boolean typed = literal.dataType() == TimestampType$.MODULE$ || literal.dataType() == LongType$.MODULE$;
        return typed && literal.value() instanceof Long && Math.abs((Long) literal.value()) >= LARGE;
    }

    public static class Nodes extends Rules.Each {
        public Object apply(Object node) {
            return isPlain(node) ? ((SparkPlan) node).transformExpressions(new Held()) : node;
        }
    }

    /** Whether an expression has the current time in it. */
    public static class Times extends AbstractFunction1 {
        public Object apply(Object expression) {
            boolean found = isTime(expression);
            for (Iterator all = ((TreeNode) expression).children().iterator(); !found && all.hasNext();) {
                found = (Boolean) apply(all.next());
            }
            return found;
        }
    }

    public static class Held extends Rules.Each {
        public Object apply(Object node) {
            return isTime(node) ? new Time((Literal) node) : node;
        }
    }

    /** A literal whose value is not in the generated code. (Not one of Spark's: transform keeps a literal that is equal.) */
    public static class Time extends LeafExpression implements Serializable {
        private final Literal literal;

        Time(Literal literal) {
            this.literal = literal;
        }

        public boolean nullable() {
            return false;
        }

        public boolean foldable() {
            return true;
        }

        public DataType dataType() {
            return literal.dataType();
        }

        public Object eval(InternalRow row) {
            return literal.value();
        }

        public ExprCode doGenCode(CodegenContext context, ExprCode code) {
            String reference = context.addReferenceObj("currentTime", literal.value(), "Long");
            return ExprCode$.MODULE$.forNonNullValue(JavaCode$.MODULE$.expression(reference + ".longValue()", dataType()));
        }

        public String toString() {
            return literal.toString();
        }

        public String sql() {
            return literal.sql();
        }

        public int productArity() {
            return 1;
        }

        public Object productElement(int n) {
            return literal;
        }

        public boolean canEqual(Object other) {
            return other instanceof Time;
        }

        public boolean equals(Object other) {
            return other instanceof Time && ((Time) other).literal.equals(literal);
        }

        public int hashCode() {
            return literal.hashCode();
        }
    }
}
