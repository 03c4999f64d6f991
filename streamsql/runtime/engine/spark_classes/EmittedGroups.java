package streamsql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Final$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.BaseLimitExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.execution.aggregate.SortAggregateExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.python.MapInBatchExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Computes the result of a group where its state emits it. A state emits each group once, and Spark groups what it
 * emits again, in a hash table or by sorting, for the last step of the aggregation. Here this step is a projection of each row:
 * the step's own expressions, which merge the row into the empty buffer and evaluate it, so that the results are the same
 * to the last bit.
 *
 * spark.streamsql.emittedGroups = off leaves plans as they are.
 */
public class EmittedGroups extends Rules.Guarded {
    protected String setting() {
        return "spark.streamsql.emittedGroups";
    }

    protected TreeNode changed(TreeNode plan) {
        return Rules.has(plan, StateStoreSaveExec.class) ? plan.transformUp(new EachAggregation(readsAll(plan))) : plan;
    }

    /** Whether a plan reads all rows of a state, after which the state is committed. Spark's last step reads them before it
     * gives any; a function over micro-batches (foreachBatch), for one, may take the first rows only. */
    private static boolean readsAll(TreeNode plan) {
        return plan instanceof WriteToDataSourceV2Exec && !Rules.has(plan, BaseLimitExec.class)
            && !Rules.has(plan, MapInBatchExec.class);
    }

    public static class EachAggregation extends Rules.Each {
        private final boolean readsAll;

        EachAggregation(boolean readsAll) {
            this.readsAll = readsAll;
        }

        public Object apply(Object node) {
            boolean hashed = node instanceof HashAggregateExec || node instanceof SortAggregateExec;
            SparkPlan projection = hashed ? projection((BaseAggregateExec) node, readsAll) : null;
            return projection == null ? node : projection;
        }
    }

    /** What replaces the last step of an aggregation; null where it stays as it is. */
    private static SparkPlan projection(BaseAggregateExec last, boolean readsAll) {
        SparkPlan rows = (SparkPlan) last.children().head();
        rows = rows instanceof SortExec ? ((SortExec) rows).child() : rows;
        if (last.groupingExpressions().isEmpty() || !emits(rows, last.groupingExpressions(), readsAll)) {
            return null;
        }
        Map results = new HashMap(); // of each aggregate, by its attribute
        for (Iterator all = last.aggregateExpressions().iterator(); all.hasNext();) {
            AggregateExpression each = (AggregateExpression) all.next();
            boolean plain = each.mode() == Final$.MODULE$ && !each.isDistinct()
                && each.aggregateFunction() instanceof DeclarativeAggregate;
            if (!plain) {
                return null;
            }
            DeclarativeAggregate function = (DeclarativeAggregate) each.aggregateFunction();
            Map empty = new HashMap();
            Map merged = new HashMap();
            for (int i = 0; i < function.aggBufferAttributes().size(); i++) {
                empty.put(id(function.aggBufferAttributes().apply(i)), function.initialValues().apply(i));
            }
            for (int i = 0; i < function.aggBufferAttributes().size(); i++) {
                merged.put(id(function.aggBufferAttributes().apply(i)), named(function.mergeExpressions().apply(i), empty));
            }
            Expression result = named(function.evaluateExpression(), merged);
            if (!result.deterministic() || !result.dataType().equals(each.resultAttribute().dataType())) {
                return null;
            }
            results.put(id(each.resultAttribute()), result);
        }
        List columns = new ArrayList();
        for (Iterator all = last.resultExpressions().iterator(); all.hasNext();) {
            NamedExpression each = (NamedExpression) all.next();
            Expression result = named(each, results);
            if (!(result instanceof NamedExpression)) {
                result = new Alias(result, each.name(), each.exprId(), each.qualifier(), Option.empty(), Rules.seq(new ArrayList()));
            }
            if (!result.references().subsetOf(rows.outputSet())) {
                return null;
            }
            columns.add(result);
        }
        return new ProjectExec(Rules.seq(columns), rows);
    }

    /** Whether rows are the groups that a state emits, each once, for these keys, and all are read: an exchange does. */
    private static boolean emits(SparkPlan rows, Seq keys, boolean readsAll) {
        if (!readsAll && rows instanceof StateStoreSaveExec) {
            return false;
        }
        SparkPlan below = rows;
        while (below instanceof SharedExchanges.Shared || below instanceof ShuffleExchangeExec) {
            below = (SparkPlan) below.children().head();
        }
        if (!(below instanceof StateStoreSaveExec) || keys.size() != ((StateStoreSaveExec) below).keyExpressions().size()) {
            return false;
        }
        for (Iterator all = keys.iterator(); all.hasNext();) {
            Object key = all.next();
            if (!(key instanceof Attribute) || !SharedStates.contains(((StateStoreSaveExec) below).keyExpressions(), (Attribute) key)) {
                return false;
            }
        }
        return true;
    }

    private static Object id(Object attribute) {
        return ((NamedExpression) attribute).exprId();
    }

    private static Expression named(Object expression, Map values) {
        return (Expression) ((TreeNode) expression).transformUp(new SharedExchanges.Named(values));
    }
}
