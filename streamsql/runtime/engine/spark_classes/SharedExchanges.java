package streamsql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import scala.collection.Iterator;

/**
 * Computes an exchange once that occurs several times in a micro-batch: where a query aggregates a stream twice in the
 * same way, such as a join of the groups with the largest of them, the stream is read and shuffled once.
 *
 * Spark has a rule for that (spark.sql.exchange.reuse), which leaves a leaf in the place of the second exchange.
 * IncrementalExecution computes the watermark of each stateful operation from the nodes below it; below a leaf there
 * is none, so that no window closes. Here all nodes stay, and the second exchange takes the rows of the first one.
 *
 * Only exchanges without state below them are shared here; SharedStates, which comes before, shares equal aggregations
 * with their state. Both come before the other rules of this jar, and compare what Spark has planned.
 */
public class SharedExchanges extends Rules.Guarded {
    protected String setting() {
        return "spark.streamsql.sharing";
    }

    protected TreeNode changed(TreeNode plan) {
        Map results = repeated((SparkPlan) plan);
        return results.isEmpty() ? plan : shared((SparkPlan) plan, results, new HashMap());
    }

    /** What each exchange computes, of those that occur several times. */
    private static Map repeated(SparkPlan plan) {
        List exchanges = new ArrayList();
        collect(plan, exchanges);
        Map results = new IdentityHashMap();
        Map seen = new HashMap();
        for (int i = 0; exchanges.size() > 1 && i < exchanges.size(); i++) {
            Object result = ((SparkPlan) ((SparkPlan) exchanges.get(i)).transformUp(new WithoutAliases())).canonicalized();
            Object other = seen.put(result, exchanges.get(i));
            if (other != null) {
                results.put(other, result);
                results.put(exchanges.get(i), result);
            }
        }
        return results;
    }

    /** A plan whose columns have their own names, for comparison: of two equal parts of a join, Spark may name the columns
     * of one by aliases. */
    public static class WithoutAliases extends Rules.Each {
        private final Map attributes = new HashMap(); // for the aliases so far

        public Object apply(Object node) {
            SparkPlan plan = (SparkPlan) ((SparkPlan) node).transformExpressionsUp(new Named(attributes));
            if (!(plan instanceof ProjectExec)) {
                return plan;
            }
            List columns = new ArrayList();
            for (Iterator all = ((ProjectExec) plan).projectList().iterator(); all.hasNext();) {
                Object column = all.next();
                if (column instanceof Alias && ((Alias) column).child() instanceof Attribute) {
                    attributes.put(((Alias) column).exprId(), ((Alias) column).child());
                    column = ((Alias) column).child();
                }
                columns.add(column);
            }
            return new ProjectExec(Rules.seq(columns), ((ProjectExec) plan).child());
        }
    }

    public static class Named extends Rules.Each {
        private final Map attributes;

        Named(Map attributes) {
            this.attributes = attributes;
        }

        public Object apply(Object node) {
            Object other = node instanceof Attribute ? attributes.get(((Attribute) node).exprId()) : null;
            return other == null ? node : other;
        }
    }

    /** Adds the exchanges of streams that have no state below them. */
    private static void collect(SparkPlan plan, List exchanges) {
        if (plan instanceof Shared && !((Shared) plan).computes) {
            return;
        }
        if (plan instanceof ShuffleExchangeExec && Rules.has(plan, EventTimeWatermarkExec.class) && repeatable(plan)) {
            exchanges.add(plan);
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            collect((SparkPlan) all.next(), exchanges);
        }
    }

    private static boolean repeatable(SparkPlan plan) {
        return !Rules.has(plan, StatefulOperator.class) && deterministic(plan);
    }

    static boolean deterministic(SparkPlan plan) {
        for (Iterator all = plan.expressions().iterator(); all.hasNext();) {
            if (!((Expression) all.next()).deterministic()) {
                return false;
            }
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (!deterministic((SparkPlan) all.next())) {
                return false;
            }
        }
        return true;
    }

    /** results: what each exchange computes; firsts: the rows of those that have been seen, by what they compute. */
    private static SparkPlan shared(SparkPlan plan, Map results, Map firsts) {
        Object result = results.get(plan);
        if (result != null) {
            boolean first = !firsts.containsKey(result);
            if (first) {
                firsts.put(result, new Rows());
            }
            return new Shared((Rows) firsts.get(result), first ? plan : (SparkPlan) plan.transformUp(new WithoutMetrics()), true);
        }
        List children = new ArrayList();
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            children.add(shared((SparkPlan) all.next(), results, firsts));
        }
        return (SparkPlan) Rules.with(plan, children);
    }

    /** Of several nodes with one name, Spark reports the metrics of the last: those of this one would be empty. */
    public static class WithoutMetrics extends Rules.Each {
        public Object apply(Object node) {
            return node instanceof CollectMetricsExec ? ((CollectMetricsExec) node).child() : node;
        }
    }

    /** What the nodes of one exchange share. */
    public static class Rows {
        private RDD rows;

        synchronized RDD of(SparkPlan exchange, boolean computes) {
            if (rows == null && !computes) {
                throw new IllegalStateException("shared rows are read before they are computed");
            }
            if (rows == null) {
                rows = exchange.execute();
            }
            return rows;
        }
    }

    /** An exchange; of those that may compute the rows of all, the first one that is executed does. */
    public static class Shared extends Rules.Around {
        private final transient Rows rows;
        final boolean computes;

        public Shared(Rows rows, SparkPlan exchange, boolean computes) {
            super(exchange);
            this.rows = rows;
            this.computes = computes;
        }

        public RDD doExecute() {
            return rows.of(this.child(), computes);
        }

        public CoalesceExec withNewChildInternal(SparkPlan child) {
            return new Shared(rows, child, computes);
        }
    }
}
