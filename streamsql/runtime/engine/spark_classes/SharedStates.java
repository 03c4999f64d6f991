package streamsql;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreRestoreExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Keeps the state of an aggregation once that occurs several times in a streaming query in the same way, such as the
 * counts of a window that are joined with the largest of them.
 *
 * The first of the equal aggregations updates its state and emits its groups into an exchange; the others read this
 * exchange. Their own nodes stay in the plan, since Spark computes the watermarks of a micro-batch from the nodes of the one
 * before, but they are not executed: of their state nothing is written. So a checkpoint of Spark's own plan, which has all
 * states, can be resumed by this one; a checkpoint of this one has only the first state, and is resumed with
 * the same plan, whatever the setting says.
 */
public class SharedStates extends Rules.Guarded {
    protected TreeNode changed(TreeNode plan) {
        List saves = new ArrayList();
        collect((SparkPlan) plan, false, saves);
        if (saves.size() < 2 || SQLConf.get().stateStoreCheckpointFormatVersion() > 1) { // 2 asks each operation for its files
            return plan;
        }
        Map groups = new IdentityHashMap(); // by each node that has an equal one
        Map firsts = new HashMap();
        for (int i = 0; i < saves.size(); i++) {
            StateStoreSaveExec save = (StateStoreSaveExec) saves.get(i);
            if (!onlyAggregations(save) || !SharedExchanges.deterministic(save)) {
                continue;
            }
            Object result = ((SparkPlan) ((SparkPlan) save.transformUp(new WithoutState()))
                .transformUp(new SharedExchanges.WithoutAliases())).canonicalized();
            Group group = (Group) firsts.get(result);
            if (group == null) {
                firsts.put(result, new Group(save));
            } else if (on() || missing(save)) {
                groups.put(group.first, group);
                groups.put(save, group);
            }
        }
        return groups.isEmpty() ? plan : shared((SparkPlan) plan, groups);
    }

    private static boolean on() {
        return !SQLConf.get().getConfString("spark.streamsql.sharing", "on").equals("off");
    }

    /** Whether a query is resumed whose checkpoint has no state for a node, since it was shared before. */
    private static boolean missing(StateStoreSaveExec save) {
        StatefulOperatorStateInfo info = (StatefulOperatorStateInfo) save.stateInfo().get();
        if (info.storeVersion() == 0) {
            return false;
        }
        try {
            Path folder = new Path(info.checkpointLocation(), info.operatorId() + "/0");
            FileSystem files = folder.getFileSystem(save.session().sessionState().newHadoopConf());
            if (!files.exists(folder)) {
                return true;
            }
            FileStatus[] all = files.listStatus(folder);
            for (int i = 0; i < all.length; i++) {
                String name = all[i].getPath().getName();
                if (name.startsWith(info.storeVersion() + ".") || name.startsWith(info.storeVersion() + "_")) {
                    return false;
                }
            }
            return true;
        } catch (IOException unknown) {
            return false;
        }
    }

    /** Adds the aggregations: the outermost first, in the order in which they are executed. */
    private static void collect(SparkPlan plan, boolean broadcast, List saves) {
        if (plan instanceof StateStoreSaveExec && !broadcast) {
            saves.add(plan);
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            collect((SparkPlan) all.next(), broadcast || plan instanceof BroadcastExchangeExec, saves);
        }
    }

    static boolean onlyAggregations(SparkPlan plan) {
        boolean aggregation = plan instanceof StateStoreSaveExec || plan instanceof StateStoreRestoreExec;
        if (plan instanceof StatefulOperator && !aggregation) {
            return false;
        }
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            if (!onlyAggregations((SparkPlan) all.next())) {
                return false;
            }
        }
        return true;
    }

    /** Operations without the place of their state, for comparison. */
    public static class WithoutState extends Rules.Each {
        public Object apply(Object node) {
            if (node instanceof StateStoreSaveExec) {
                StateStoreSaveExec save = (StateStoreSaveExec) node;
                return save.copy(save.keyExpressions(), Option.empty(), save.outputMode(), save.eventTimeWatermarkForLateEvents(),
                    save.eventTimeWatermarkForEviction(), save.stateFormatVersion(), save.child());
            }
            if (node instanceof StateStoreRestoreExec) {
                StateStoreRestoreExec restore = (StateStoreRestoreExec) node;
                return restore.copy(restore.keyExpressions(), Option.empty(), restore.stateFormatVersion(), restore.child());
            }
            return node;
        }
    }

    /** Equal aggregations. */
    private static class Group {
        final StateStoreSaveExec first;
        final SharedExchanges.Rows rows = new SharedExchanges.Rows();
        HashPartitioning partitioning; // of the rows, by columns of the first

        Group(StateStoreSaveExec first) {
            this.first = first;
        }
    }

    private static SparkPlan shared(SparkPlan plan, Map groups) {
        if (plan instanceof ShuffleExchangeExec) {
            SparkPlan without = withoutExchange((ShuffleExchangeExec) plan, groups);
            if (without != null) {
                return without;
            }
        }
        if (groups.containsKey(plan)) {
            StateStoreSaveExec save = (StateStoreSaveExec) plan;
            Group group = (Group) groups.get(plan);
            if (group.partitioning == null) {
                int partitions = ((StatefulOperatorStateInfo) save.stateInfo().get()).numPartitions();
                group.partitioning = new HashPartitioning(save.keyExpressions(), partitions);
            }
            return read(save, group, groups);
        }
        return sharedBelow(plan, groups);
    }

    private static SparkPlan sharedBelow(SparkPlan plan, Map groups) {
        List children = new ArrayList();
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            children.add(shared((SparkPlan) all.next(), groups));
        }
        return (SparkPlan) Rules.with(plan, children);
    }

    /** The rows of a shared aggregation. */
    private static SparkPlan read(StateStoreSaveExec save, Group group, Map groups) {
        boolean first = save == group.first;
        SparkPlan rows = first ? sharedBelow(save, groups) : (SparkPlan) save.transformUp(new NotExecuted());
        SparkPlan exchange = new ShuffleExchangeExec(
            partitioning(group, save), rows, ENSURE_REQUIREMENTS$.MODULE$, Option.empty(), false);
        return new SharedExchanges.Shared(group.rows, exchange, first);
    }

    /** How the rows of a group are partitioned, by the columns of one of its aggregations. */
    private static HashPartitioning partitioning(Group group, StateStoreSaveExec save) {
        Map columns = new HashMap();
        for (int i = 0; i < save.output().size(); i++) {
            columns.put(((Attribute) group.first.output().apply(i)).exprId(), save.output().apply(i));
        }
        List expressions = new ArrayList();
        for (Iterator all = group.partitioning.expressions().iterator(); all.hasNext();) {
            expressions.add(((Expression) all.next()).transformUp(new SharedExchanges.Named(columns)));
        }
        return new HashPartitioning(Rules.seq(expressions), group.partitioning.numPartitions());
    }

    /** What is below an exchange, where the rows of a shared aggregation are partitioned for it; else null. */
    private static SparkPlan withoutExchange(ShuffleExchangeExec exchange, Map groups) {
        if (!(exchange.outputPartitioning() instanceof HashPartitioning)) {
            return null;
        }
        HashPartitioning wanted = (HashPartitioning) exchange.outputPartitioning();
        Seq expressions = wanted.expressions();
        List between = new ArrayList();
        SparkPlan below = exchange.child();
        while (!groups.containsKey(below)) {
            expressions = Columns.below(below, expressions);
            if (expressions == null) {
                return null;
            }
            between.add(below);
            below = (SparkPlan) below.children().head();
        }
        StateStoreSaveExec save = (StateStoreSaveExec) below;
        Group group = (Group) groups.get(save);
        HashPartitioning partitioning = new HashPartitioning(expressions, wanted.numPartitions());
        for (Iterator all = partitioning.references().iterator(); all.hasNext();) {
            if (!contains(save.keyExpressions(), (Attribute) all.next())) {
                return null;
            }
        }
        if (save == group.first && group.partitioning == null) {
            group.partitioning = partitioning;
        } else if (group.partitioning == null || !partitioning(group, save).semanticEquals(partitioning)) {
            return null;
        }
        SparkPlan plan = read(save, group, groups);
        for (int i = between.size() - 1; i >= 0; i--) {
            List child = new ArrayList();
            child.add(plan);
            plan = (SparkPlan) Rules.with((TreeNode) between.get(i), child);
        }
        return plan;
    }

    static boolean contains(Seq attributes, Attribute one) {
        for (Iterator all = attributes.iterator(); all.hasNext();) {
            if (((Attribute) all.next()).exprId().equals(one.exprId())) {
                return true;
            }
        }
        return false;
    }

    /** Follows columns down a plan. */
    static class Columns {
        /** The same values, computed from the output of a node's only child; null where they cannot be. */
        static Seq below(SparkPlan plan, Seq expressions) {
            if (plan instanceof FilterExec || plan instanceof SortExec) {
                return expressions;
            }
            Map columns = new HashMap();
            if (plan instanceof ProjectExec) {
                define(((ProjectExec) plan).projectList(), columns);
            } else if (plan instanceof BaseAggregateExec) {
                Map keys = new HashMap();
                define(((BaseAggregateExec) plan).groupingExpressions(), keys);
                for (Iterator all = ((BaseAggregateExec) plan).resultExpressions().iterator(); all.hasNext();) {
                    NamedExpression each = (NamedExpression) all.next();
                    Expression value = each instanceof Alias ? ((Alias) each).child() : (Expression) each;
                    if (defined(value, keys)) {
                        columns.put(each.exprId(), value.transformUp(new SharedExchanges.Named(keys)));
                    }
                }
            } else {
                return null;
            }
            List below = new ArrayList();
            for (Iterator all = expressions.iterator(); all.hasNext();) {
                Expression each = (Expression) all.next();
                if (!defined(each, columns)) {
                    return null;
                }
                below.add(each.transformUp(new SharedExchanges.Named(columns)));
            }
            return Rules.seq(below);
        }

        private static void define(Seq named, Map columns) {
            for (Iterator all = named.iterator(); all.hasNext();) {
                NamedExpression each = (NamedExpression) all.next();
                columns.put(each.exprId(), each instanceof Alias ? ((Alias) each).child() : (Expression) each);
            }
        }

        private static boolean defined(Expression expression, Map columns) {
            for (Iterator all = expression.references().iterator(); all.hasNext();) {
                if (!columns.containsKey(((Attribute) all.next()).exprId())) {
                    return false;
                }
            }
            return true;
        }
    }

    /** An aggregation that another one computes. Spark reports the metrics of the last of several nodes with one name, and
     * expects the state of each operation to be committed. */
    public static class NotExecuted extends Rules.Each {
        public Object apply(Object node) {
            if (node instanceof StateStoreSaveExec) {
                return new OfAnother((StateStoreSaveExec) node, ((StateStoreSaveExec) node).child());
            }
            return node instanceof CollectMetricsExec ? ((CollectMetricsExec) node).child() : node;
        }
    }

    public static class OfAnother extends StateStoreSaveExec {
        OfAnother(StateStoreSaveExec save, SparkPlan child) {
            super(save.keyExpressions(), save.stateInfo(), save.outputMode(), save.eventTimeWatermarkForLateEvents(),
                save.eventTimeWatermarkForEviction(), save.stateFormatVersion(), child);
        }

        public String shortName() {
            return "sharedState";
        }

        public Seq stateStoreNames() {
            return Rules.seq(new ArrayList());
        }

        public StateStoreSaveExec withNewChildInternal(SparkPlan child) {
            return new OfAnother(this, child);
        }

        public boolean canEqual(Object other) {
            return other instanceof OfAnother;
        }

        public boolean equals(Object other) {
            return other instanceof OfAnother && super.equals(other);
        }
    }
}
