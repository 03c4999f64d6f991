package streamsql;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeStatsAccum;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * Counts the event times of a stream where Spark reads them for its watermark.
 *
 * A program asks for them by Dataset.observe, in front of withWatermark, with metrics that any Spark computes
 * (connectors/event_metrics.py). Spark hands each row to them by itself, which costs a fifth of the throughput;
 * withWatermark then reads the event time of each row once more. Here the node of the metrics passes its input on,
 * and that of the watermark counts for it; where Spark has pushed a filter between them, the former counts, by one
 * call for a row. The result is reported as the metrics would be; percentiles are those
 * of a random sample of each task.
 */
public class EventTimes extends Rules.Guarded {
    private static final String PREFIX = "event time ";
    private static final String LAST = "percentiles";
    private static final String LEFT = "left";
    private static final int SAMPLE = 4096; // event times of a task
    private static final double[] SHARES = {
        0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3,
        0.5, 0.75, 1.0
    };

    protected TreeNode changed(TreeNode plan) {
        return Rules.has(plan, CollectMetricsExec.class) ? plan.transformUp(new Counted()) : plan;
    }

    public static class Counted extends Rules.Each {
        public Object apply(Object node) {
            return counted((SparkPlan) node);
        }
    }

    /** Filters before metrics that count what filters leave: so that formats such as Parquet skip the other rows. */
    public static class FiltersFirst extends Rules.Guarded {
        protected TreeNode changed(TreeNode plan) {
            return Rules.has(plan, CollectMetrics.class) ? plan.transformUp(new FilterFirst()) : plan;
        }
    }

    public static class FilterFirst extends Rules.Each {
        public Object apply(Object node) {
            return filterFirst((LogicalPlan) node);
        }
    }

    private static LogicalPlan filterFirst(LogicalPlan same) {
        if (!(same instanceof Filter) || !(((Filter) same).child() instanceof CollectMetrics)) {
            return same;
        }
        Filter filter = (Filter) same;
        CollectMetrics metrics = (CollectMetrics) filter.child();
        boolean left = ((NamedExpression) metrics.metrics().head()).name().equals(LEFT);
        if (!left || !metrics.name().startsWith(PREFIX) || !filter.condition().deterministic()) {
            return same;
        }
        List below = new ArrayList();
        below.add(new Filter(filter.condition(), metrics.child()));
        return (LogicalPlan) metrics.withNewChildren(Rules.seq(below));
    }

    private static SparkPlan counted(SparkPlan same) {
        if (same instanceof CollectMetricsExec && isOurs((CollectMetricsExec) same)) {
            CollectMetricsExec metrics = (CollectMetricsExec) same;
            return new OwnMetrics(metrics.name(), metrics.metricExpressions(), metrics.child());
        }
        if (same instanceof EventTimeWatermarkExec && ((EventTimeWatermarkExec) same).child() instanceof OwnMetrics) {
            EventTimeWatermarkExec mark = (EventTimeWatermarkExec) same;
            OwnMetrics own = (OwnMetrics) mark.child();
            SparkPlan metrics = new Metrics(own.name(), own.metricExpressions(), own.child());
            return new Watermark(mark.nodeId(), mark.eventTime(), mark.delay(), metrics);
        }
        if (same instanceof FilterExec && ((FilterExec) same).child() instanceof OwnMetrics) {
            return besideOthers((FilterExec) same);
        }
        return same;
    }

    /** A filter with its metrics next to others below, such as those of malformed rows: Spark's generated code, which
     * each of them interrupts, is interrupted once. */
    private static SparkPlan besideOthers(FilterExec filter) {
        OwnMetrics own = (OwnMetrics) filter.child();
        if (!(own.child() instanceof ProjectExec) || !(((ProjectExec) own.child()).child() instanceof CollectMetricsExec)) {
            return filter;
        }
        ProjectExec project = (ProjectExec) own.child();
        for (Iterator all = project.projectList().iterator(); all.hasNext();) {
            if (!(all.next() instanceof Attribute)) {
                return filter;
            }
        }
        SparkPlan metrics = new OwnMetrics(own.name(), own.metricExpressions(), project.child());
        return new FilterExec(filter.condition(), new ProjectExec(project.projectList(), metrics));
    }

    private static boolean isOurs(CollectMetricsExec metrics) {
        String[] names = metrics.metricsSchema().fieldNames();
        return !(metrics instanceof Metrics) && metrics.name().startsWith(PREFIX)
            && names[names.length - 1].equals(LAST) && column(metrics) >= 0;
    }

    /** The place of the event time in the input of metrics; -1 where they refer to no timestamp, or to several columns. */
    private static int column(CollectMetricsExec metrics) {
        int column = -1;
        for (Iterator all = metrics.references().iterator(); all.hasNext();) {
            Attribute time = (Attribute) all.next();
            if (column >= 0 || !(time.dataType() instanceof TimestampType)) {
                return -1;
            }
            Seq output = metrics.child().output();
            for (int i = 0; i < output.size(); i++) {
                column = ((Attribute) output.apply(i)).exprId().equals(time.exprId()) ? i : column;
            }
        }
        return column;
    }

    /** The metrics of a stream, which are counted by the watermark above. */
    public static class Metrics extends CollectMetricsExec {
        private transient Times times;

        public Metrics(String name, Seq expressions, SparkPlan child) {
            super(name, expressions, child);
        }

        synchronized Times times() {
            if (times == null) {
                times = new Times();
                times.register(this.session().sparkContext(), Option.empty(), false);
            }
            return times;
        }

        public Row collectedMetrics() {
            Times all = times().total();
            boolean none = all.times == 0;
            Object[] values = {
                Long.valueOf(all.rows),
                Long.valueOf(all.times),
                none ? null : Long.valueOf(all.oldest),
                none ? null : Long.valueOf(all.newest),
                Long.valueOf(all.size),
                none ? null : Rules.seq(times().percentiles())
            };
            return new GenericRowWithSchema(values, this.metricsSchema());
        }

        public void resetMetrics() {
            super.resetMetrics();
            times().reset();
        }

        public RDD doExecute() {
            return this.child().execute();
        }

        public CollectMetricsExec withNewChildInternal(SparkPlan child) {
            return new Metrics(this.name(), this.metricExpressions(), child);
        }

        public String nodeName() {
            return "CollectMetrics";
        }

        public boolean canEqual(Object other) { // else Spark keeps the node that this one replaces
            return other instanceof Metrics;
        }

        public boolean equals(Object other) {
            return other instanceof Metrics && super.equals(other);
        }
    }

    /** The metrics of a stream which count by themselves: a filter stands between them and the watermark. */
    public static class OwnMetrics extends Metrics {
        public OwnMetrics(String name, Seq expressions, SparkPlan child) {
            super(name, expressions, child);
        }

        public RDD doExecute() {
            return counted(this.child(), new Count(column(this), null, this.times()));
        }

        public CollectMetricsExec withNewChildInternal(SparkPlan child) {
            return new OwnMetrics(this.name(), this.metricExpressions(), child);
        }

        public boolean canEqual(Object other) {
            return other instanceof OwnMetrics;
        }

        public boolean equals(Object other) {
            return other instanceof OwnMetrics && super.equals(other);
        }
    }

    /** Spark's node of a watermark, which also counts for the metrics below it. */
    public static class Watermark extends EventTimeWatermarkExec {
        public Watermark(UUID nodeId, Attribute eventTime, CalendarInterval delay, SparkPlan child) {
            super(nodeId, eventTime, delay, child);
        }

        public RDD doExecute() {
            if (!(this.child() instanceof Metrics)) {
                return super.doExecute();
            }
            Metrics metrics = (Metrics) this.child();
            return counted(metrics, new Count(column(metrics), this.eventTimeStats(), metrics.times()));
        }

        public EventTimeWatermarkExec withNewChildInternal(SparkPlan child) {
            return new Watermark(this.nodeId(), this.eventTime(), this.delay(), child);
        }

        public String nodeName() {
            return "EventTimeWatermark";
        }

        public boolean canEqual(Object other) { // else Spark keeps the node that this one replaces
            return other instanceof Watermark;
        }

        public boolean equals(Object other) {
            return other instanceof Watermark && super.equals(other);
        }
    }

    private static RDD counted(SparkPlan rows, Count count) {
        return rows.execute().mapPartitionsInternal(
            new Rows(count), false, ClassTag$.MODULE$.apply(InternalRow.class));
    }

    /** The rows of a task, as they are, whose event times are counted. */
    public static class Rows extends AbstractFunction1 implements Serializable {
        private final Count count;

        Rows(Count count) {
            this.count = count;
        }

        public Object apply(Object rows) {
            count.times.partition = TaskContext.getPartitionId();
            return ((Iterator) rows).map(count);
        }
    }

    /** A row as it is, whose event time is counted; for the watermark, too, if there are stats of it. */
    public static class Count extends AbstractFunction1 implements Serializable {
        private final int column;
        private final EventTimeStatsAccum stats;
        private final Times times;

        Count(int column, EventTimeStatsAccum stats, Times times) {
            this.column = column;
            this.stats = stats;
            this.times = times;
        }

        public Object apply(Object each) {
            InternalRow row = (InternalRow) each;
            if (row.isNullAt(column)) {
                times.rows++;
                if (stats != null) {
                    stats.add(0L); // as Spark's own node does
                }
                return row;
            }
            long time = Math.floorDiv(row.getLong(column), 1000L);
            times.count(time);
            if (stats != null) {
                stats.add(time);
            }
            return row;
        }
    }

    /**
     * The event times of rows, in milliseconds. A task fills one; the driver keeps the one with the most rows for each
     * partition: a function of foreachBatch may have several jobs compute the rows of a micro-batch, or some of them.
     */
    public static class Times extends AccumulatorV2 {
        long rows;
        long times;
        long oldest = Long.MAX_VALUE;
        long newest = Long.MIN_VALUE;
        int partition = -1;
        private long[] sample = new long[64];
        private int size;
        private long random = 0x9E3779B97F4A7C15L;
        private Map tasks = new TreeMap();

        void count(long time) {
            rows++;
            times++;
            oldest = Math.min(oldest, time);
            newest = Math.max(newest, time);
            if (size < SAMPLE) {
                if (size == sample.length) {
                    sample = Arrays.copyOf(sample, 2 * size);
                }
                sample[size++] = time;
                return;
            }
            random ^= random << 13;
            random ^= random >>> 7;
            random ^= random << 17;
            long place = (random >>> 1) % times; // reservoir sampling, algorithm R
            if (place < SAMPLE) {
                sample[(int) place] = time;
            }
        }

        /** What all tasks have counted together, without a sample. */
        Times total() {
            Times total = new Times();
            for (java.util.Iterator all = tasks.values().iterator(); all.hasNext();) {
                Times each = (Times) all.next();
                total.rows += each.rows;
                total.times += each.times;
                total.size += each.size;
                total.oldest = Math.min(total.oldest, each.oldest);
                total.newest = Math.max(total.newest, each.newest);
            }
            return total;
        }

        /** For each of SHARES, the newest event time of so many rows, the oldest first. */
        List percentiles() {
            Times total = total();
            double most = 1; // the rows that an event time stands for
            for (java.util.Iterator all = tasks.values().iterator(); all.hasNext();) {
                most = Math.max(most, ((Times) all.next()).weight());
            }
            long[] drawn = new long[total.size];
            int number = 0;
            for (java.util.Iterator all = tasks.values().iterator(); all.hasNext();) {
                Times each = (Times) all.next();
                long[] sorted = Arrays.copyOf(each.sample, each.size);
                Arrays.sort(sorted);
                double step = most / each.weight(); // fewer of the tasks whose sample is closer
                for (double at = step / 2; at < sorted.length; at += step) {
                    drawn[number++] = sorted[(int) at];
                }
            }
            Arrays.sort(drawn, 0, number);
            List percentiles = new ArrayList();
            for (int i = 0; i < SHARES.length; i++) {
                int place = Math.max(0, (int) Math.ceil(SHARES[i] * number) - 1);
                percentiles.add(Long.valueOf(i + 1 == SHARES.length || number == 0 ? total.newest : drawn[place]));
            }
            return percentiles;
        }

        private double weight() {
            return size == 0 ? 1 : (double) times / size;
        }

        public boolean isZero() {
            return rows == 0 && tasks.isEmpty();
        }

        public AccumulatorV2 copy() {
            Times copy = new Times();
            copy.merge(this);
            return copy;
        }

        public void reset() {
            rows = 0;
            times = 0;
            oldest = Long.MAX_VALUE;
            newest = Long.MIN_VALUE;
            partition = -1;
            size = 0;
            tasks = new TreeMap();
        }

        public void add(Object time) {
            count(((Long) time).longValue());
        }

        public void merge(AccumulatorV2 other) {
            Times more = (Times) other;
            tasks.putAll(more.tasks);
            Times known = (Times) tasks.get(Integer.valueOf(more.partition));
            if (more.rows > 0 && (known == null || known.rows < more.rows)) {
                tasks.put(Integer.valueOf(more.partition), more);
            }
        }

        public Object value() {
            return Long.valueOf(rows);
        }
    }
}
