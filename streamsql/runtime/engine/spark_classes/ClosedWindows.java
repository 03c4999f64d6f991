package streamsql;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.optimizer.BuildLeft$;
import org.apache.spark.sql.catalyst.optimizer.BuildRight$;
import org.apache.spark.sql.catalyst.optimizer.BuildSide;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreRestoreExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/**
 * Joins the groups of closed windows without state.
 *
 * An aggregation emits all groups of a window in the micro-batch whose watermark closes it (output mode append). Where two
 * such aggregations are joined by their windows, both sides of a window come in the same micro-batch, at whose
 * end the watermark evicts them from the state of the join: Spark puts each row into that state and removes it again. Here the
 * rows are joined by a hash table of one side; Spark's join runs beside it over no rows, so that its state, which is
 * empty at the end of each micro-batch, is committed as with Spark's own plan, and checkpoints fit both. Where they are joined
 * by the ends of their windows, Spark would evict nothing.
 *
 * spark.streamsql.closedWindows = off leaves plans as they are.
 */
public class ClosedWindows extends Rules.Guarded {
    private static final ClassTag ROW = ClassTag$.MODULE$.apply(InternalRow.class);
    private static final AtomicLong NUMBERS = new AtomicLong(); // of joins
    private static final String IN_MEMORY = "HDFSBackedStateStoreProvider"; // a state that need not fit into memory: no hash table

    protected String setting() {
        return "spark.streamsql.closedWindows";
    }

    protected TreeNode changed(TreeNode plan) {
        return Rules.has(plan, StreamingSymmetricHashJoinExec.class) ? plan.transformUp(new EachJoin()) : plan;
    }

    public static class EachJoin extends Rules.Each {
        public Object apply(Object node) {
            return node instanceof StreamingSymmetricHashJoinExec ? joined((StreamingSymmetricHashJoinExec) node) : node;
        }
    }

    private static SparkPlan joined(StreamingSymmetricHashJoinExec given) {
        StreamingSymmetricHashJoinExec join = given;
        if (join.joinType() != Inner$.MODULE$) {
            return join;
        }
        int key = key(join.leftKeys());
        key = key < 0 ? key(join.rightKeys()) : key; // as Spark takes the key that evicts state
        boolean kept = join.stateWatermarkPredicates().left().isEmpty() && join.stateWatermarkPredicates().right().isEmpty();
        for (int i = 0; key < 0 && kept && i < join.leftKeys().size(); i++) {
            if (closed(join, join.left(), join.leftKeys(), i) != null && closed(join, join.right(), join.rightKeys(), i) != null) {
                join = evicting(join, i);
                key = i;
            }
        }
        boolean evicted = byKey(join.stateWatermarkPredicates().left()) && byKey(join.stateWatermarkPredicates().right());
        if (key < 0 || !evicted || !SQLConf.get().stateStoreProviderClass().endsWith(IN_MEMORY)) {
            return join;
        }
        Closed left = closed(join, join.left(), join.leftKeys(), key);
        Closed right = closed(join, join.right(), join.rightKeys(), key);
        if (left == null || right == null || left.byTime != right.byTime) {
            return join;
        }
        boolean fewer = left.save.keyExpressions().size() < right.save.keyExpressions().size();
        List none = new ArrayList();
        none.add(new NoRows(join.left()));
        none.add(new NoRows(join.right()));
        return new AtOnce((SparkPlan) Rules.with(join, none), fewer);
    }

    /** The number of the first key that has a watermark; -1 for none. */
    private static int key(Seq keys) {
        for (int i = 0; i < keys.size(); i++) {
            if (keys.apply(i) instanceof NamedExpression && timed((NamedExpression) keys.apply(i))) {
                return i;
            }
        }
        return -1;
    }

    private static boolean timed(NamedExpression column) {
        return column.metadata().contains(EventTimeWatermark$.MODULE$.delayKey());
    }

    private static boolean byKey(Option predicate) {
        return predicate.nonEmpty() && predicate.get() instanceof StreamingSymmetricHashJoinHelper.JoinStateKeyWatermarkPredicate;
    }

    /** A join with a key that is the end of a window, which evicts its state up to the watermark. Spark does so only where the
     * key is the window itself, and keeps all rows else. */
    private static StreamingSymmetricHashJoinExec evicting(StreamingSymmetricHashJoinExec join, int key) {
        Metadata timed = new MetadataBuilder().putLong(EventTimeWatermark$.MODULE$.delayKey(), 0L).build();
        Expression end = (Expression) join.leftKeys().apply(key);
        List keys = new ArrayList();
        for (int i = 0; i < join.leftKeys().size(); i++) {
            keys.add(i == key ? new Alias(end, "end", NamedExpression$.MODULE$.newExprId(), Rules.seq(new ArrayList()), Option.apply(timed), Rules.seq(new ArrayList()))
                : join.leftKeys().apply(i));
        }
        return join.copy(join.leftKeys(), join.rightKeys(), join.joinType(), join.condition(), join.stateInfo(),
            join.eventTimeWatermarkForLateEvents(), join.eventTimeWatermarkForEviction(),
            StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(
                join.left().output(), join.right().output(), Rules.seq(keys), join.rightKeys(), join.condition().full(),
                join.eventTimeWatermarkForEviction(), Option.empty(), true),
            join.stateFormatVersion(), join.left(), join.right(), join.outputMode());
    }

    /** The aggregation that emits all groups with a value of a join's key at once, up to the watermark of the join: the key is
     * their window, or the end of it. */
    private static Closed closed(StreamingSymmetricHashJoinExec join, SparkPlan side, Seq joined, int number) {
        List keys = new ArrayList();
        keys.add(joined.apply(number));
        Seq values = Rules.seq(keys);
        SparkPlan below = side;
        while (!(below instanceof StateStoreSaveExec)) {
            boolean moves = below instanceof ShuffleExchangeExec || below instanceof SharedExchanges.Shared;
            values = moves ? values : SharedStates.Columns.below(below, values);
            if (values == null) {
                return null;
            }
            below = (SparkPlan) below.children().head();
        }
        StateStoreSaveExec save = (StateStoreSaveExec) below;
        Expression value = (Expression) values.head();
        Attribute time = null;
        int times = 0;
        for (Iterator all = save.keyExpressions().iterator(); all.hasNext();) {
            Attribute each = (Attribute) all.next();
            time = timed(each) ? each : time;
            times += timed(each) ? 1 : 0;
        }
        if (times != 1) {
            return null;
        }
        boolean window = windowOf(value).semanticEquals(time);
        boolean byTime = !window && isEnd(save.child(), value, time);
        boolean emitted = save.outputMode().nonEmpty() && save.outputMode().get().toString().equals("Append")
            && save.eventTimeWatermarkForEviction().nonEmpty()
            && save.eventTimeWatermarkForEviction().equals(join.eventTimeWatermarkForEviction())
            && save.eventTimeWatermarkForLateEvents().equals(join.eventTimeWatermarkForLateEvents());
        // Other operations may hold the watermark back.
        return (window || byTime) && emitted && SharedStates.onlyAggregations(save) ? new Closed(save, byTime) : null;
    }

    /** byTime: its groups have window_time in place of the window, which the watermark passes a microsecond before the end. */
    static class Closed {
        final StateStoreSaveExec save;
        final boolean byTime;

        Closed(StateStoreSaveExec save, boolean byTime) {
            this.save = save;
            this.byTime = byTime;
        }
    }

    /** Whether a group key is the end of the window that another one is the window_time of, by the plan that computes both. */
    private static boolean isEnd(SparkPlan plan, Expression value, Expression time) {
        List both = new ArrayList();
        both.add(value);
        both.add(time);
        Seq values = Rules.seq(both);
        SparkPlan below = plan;
        while (values != null && below.children().size() == 1) {
            boolean passes = below instanceof ShuffleExchangeExec || below instanceof SharedExchanges.Shared
                || below instanceof StateStoreRestoreExec;
            values = passes ? values : SharedStates.Columns.below(below, values);
            if (values != null && isTimeBefore((Expression) values.apply(1), (Expression) values.apply(0))) {
                return true;
            }
            below = (SparkPlan) below.children().head();
        }
        return false;
    }

    /** Whether a time is a microsecond before an end, as Spark computes window_time. */
    private static boolean isTimeBefore(Expression time, Expression end) {
        if (!(time instanceof PreciseTimestampConversion) || !(time.children().head() instanceof Subtract)) {
            return false;
        }
        Subtract less = (Subtract) time.children().head();
        boolean one = less.right() instanceof Literal && "1".equals(String.valueOf(((Literal) less.right()).value()));
        return one && less.left() instanceof PreciseTimestampConversion && ((Expression) less.left().children().head()).semanticEquals(end);
    }

    /** The window of which a value is the end; else the value. */
    private static Expression windowOf(Expression value) {
        if (!(value instanceof GetStructField)) {
            return value;
        }
        GetStructField part = (GetStructField) value;
        return part.ordinal() == 1 && part.childSchema().fieldNames()[1].equals("end") ? part.child() : value;
    }

    /** No rows, in as many partitions as its child has; keeps the child for the join beside. */
    public static class NoRows extends Rules.Around {
        public NoRows(SparkPlan child) {
            super(child);
        }

        public RDD doExecute() {
            int partitions = this.child().outputPartitioning().numPartitions();
            return new JavaSparkContext(this.sparkContext()).parallelize(new ArrayList(), partitions).rdd();
        }

        public CoalesceExec withNewChildInternal(SparkPlan child) {
            return new NoRows(child);
        }
    }

    /** A join of rows that come at once, over the join of Spark, which has none. */
    public static class AtOnce extends Rules.Around {
        private final boolean left; // of its rows the hash table is made

        public AtOnce(SparkPlan join, boolean left) {
            super(join);
            this.left = left;
        }

        public RDD doExecute() {
            StreamingSymmetricHashJoinExec join = (StreamingSymmetricHashJoinExec) this.child();
            Long number = Long.valueOf(NUMBERS.incrementAndGet());
            Object reads = new Probing(number);
            BuildSide side = left ? (BuildSide) BuildLeft$.MODULE$ : BuildRight$.MODULE$;
            SparkPlan hashed = new ShuffledHashJoinExec(
                join.leftKeys(), join.rightKeys(), join.joinType(), side, join.condition().full(),
                rows(join.left(), left ? null : reads), rows(join.right(), left ? reads : null), false);
            return hashed.execute().zipPartitions(join.execute(), true, new Both(number), ROW, ROW);
        }

        private static SparkPlan rows(SparkPlan none, Object reads) {
            SparkPlan rows = ((NoRows) none).child();
            RDD all = rows.execute();
            all = reads == null ? all : all.mapPartitions((AbstractFunction1) reads, true, ROW);
            return new RDDScanExec(rows.output(), all, "rows", rows.outputPartitioning(), Rules.seq(new ArrayList()), Option.empty());
        }

        public CoalesceExec withNewChildInternal(SparkPlan child) {
            return new AtOnce(child, left);
        }
    }

    /** In a task, the rows that a join looks up in its hash table, by the join's number: if the table is empty, they are
     * not read, but the state that they come from is committed only when they have been. */
    private static final ThreadLocal PROBING = new ThreadLocal();

    public static class Probing extends AbstractFunction1 implements Serializable {
        private final Long number;

        Probing(Long number) {
            this.number = number;
        }

        public Object apply(Object rows) {
            if (PROBING.get() == null) {
                PROBING.set(new HashMap());
            }
            ((Map) PROBING.get()).put(number, rows);
            return rows;
        }
    }

    /** The rows of a join; then the rest of what it looks up is read, and Spark's join, which has none. */
    public static class Both extends AbstractFunction2 implements Serializable {
        private final Long number;

        Both(Long number) {
            this.number = number;
        }

        public Object apply(Object joined, Object none) {
            return ((Iterator) joined).concat(new Rest((Iterator) ((Map) PROBING.get()).remove(number), none));
        }
    }

    public static class Rest extends AbstractFunction0 {
        private final Iterator probing;
        private final Object none;

        Rest(Iterator probing, Object none) {
            this.probing = probing;
            this.none = none;
        }

        public Object apply() {
            while (probing.hasNext()) {
                probing.next();
            }
            return none;
        }
    }
}
