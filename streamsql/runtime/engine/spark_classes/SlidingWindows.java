package streamsql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.expressions.aggregate.PartialMerge$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ExpandExec$;
import org.apache.spark.sql.execution.ExpandExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Aggregates the rows of a streaming query over sliding windows once, by the slide that they fall into, before
 * the slides are copied into their windows. Spark copies each row into size / slide windows first.
 *
 * It changes what Spark has planned: the first step of the aggregation, which aggregates the rows of a task,
 * becomes three: groups by keys and slide, Expand, the same groups as before. What is shuffled and kept as state
 * is the same as with Spark's own plan, so that checkpoints fit both. It is done where the size is a multiple of
 * the slide (all rows of a slide are in the same windows), and only for aggregates whose result does not depend on
 * the order of rows.
 *
 * spark.streamsql.slides = off leaves plans as they are.
 */
public class SlidingWindows extends Rules.Guarded {
    private static final String MARKER = "spark.timeWindow";
    private static final int EXACT = 28; // digits of a decimal whose sum gets ten more

    protected String setting() {
        return "spark.streamsql.slides";
    }

    protected TreeNode changed(TreeNode plan) {
        if (plan instanceof HashAggregateExec && ((HashAggregateExec) plan).isStreaming()) {
            SparkPlan slides = slides((HashAggregateExec) plan);
            if (slides != null) {
                return slides;
            }
        }
        List children = new ArrayList();
        for (Iterator all = plan.children().iterator(); all.hasNext();) {
            children.add(changed((TreeNode) all.next()));
        }
        return Rules.with(plan, children);
    }

    /** The steps that replace the first one of an aggregation; null where it stays as it is. */
    private static SparkPlan slides(HashAggregateExec first) {
        List filters = new ArrayList();
        SparkPlan below = first.child();
        while (below instanceof FilterExec) {
            filters.add(0, ((FilterExec) below).condition());
            below = ((FilterExec) below).child();
        }
        int window = below instanceof ExpandExec ? window((ExpandExec) below) : -1;
        if (window < 0) {
            return null;
        }
        ExpandExec expand = (ExpandExec) below;
        Attribute windows = (Attribute) expand.output().apply(window);
        for (int i = 0; i < filters.size(); i++) {
            if (!only((Expression) filters.get(i), windows)) {
                return null;
            }
        }
        Attribute time = time(expand, window);
        if (time == null) {
            return null;
        }
        CreateNamedStruct newest = (CreateNamedStruct) ((Seq) expand.projections().head()).apply(window);
        Alias slide = alias((Expression) newest.children().apply(1), "slide");
        if (!slide.dataType().equals(time.dataType())) {
            return null;
        }

        List keys = new ArrayList(); // of the groups of a slide
        List copied = new ArrayList(); // the columns of a copy, null for its window
        for (Iterator all = first.groupingExpressions().iterator(); all.hasNext();) {
            NamedExpression key = (NamedExpression) all.next();
            if (((Expression) key).semanticEquals(windows)) {
                copied.add(null);
                continue;
            }
            if (refers((Expression) key, windows) || !((Expression) key).deterministic()) {
                return null;
            }
            Expression value = key instanceof Alias ? ((Alias) key).child() : (Expression) key;
            Alias alias = alias(value, key.name());
            keys.add(alias);
            copied.add(alias.toAttribute());
        }
        int grouped = copied.size();
        if (!copied.contains(null)) {
            return null;
        }
        keys.add(slide);

        List inside = new ArrayList();
        List merged = new ArrayList();
        List results = new ArrayList();
        List states = new ArrayList();
        List buffers = new ArrayList();
        for (Iterator all = first.aggregateExpressions().iterator(); all.hasNext();) {
            AggregateExpression each = (AggregateExpression) all.next();
            if (each.mode() != Partial$.MODULE$ || refers(each, windows) || !each.deterministic() || !exact(each)) {
                return null;
            }
            inside.add(each);
            addAll(states, each.aggregateFunction().aggBufferAttributes());
            addAll(buffers, each.aggregateFunction().inputAggBufferAttributes());
            AggregateExpression merge = each.copy(
                each.aggregateFunction(), PartialMerge$.MODULE$, false, each.filter(), each.resultId());
            merged.add(merge);
            results.add(merge.resultAttribute());
        }
        copied.addAll(buffers);
        if (copied.size() != first.output().size()) {
            return null;
        }
        List shown = attributes(keys);
        shown.addAll(buffers);
        SparkPlan slides = new HashAggregateExec(
            Option.empty(), true, first.numShufflePartitions(), Rules.seq(keys), Rules.seq(inside), Rules.seq(states), 0, Rules.seq(shown),
            expand.child());

        List projections = new ArrayList();
        for (Iterator all = expand.projections().iterator(); all.hasNext();) {
            Expression each = (Expression) ((Expression) ((Seq) all.next()).apply(window)).transformUp(new Replaced(time, slide.toAttribute()));
            List projection = new ArrayList();
            for (int i = 0; i < copied.size(); i++) {
                projection.add(copied.get(i) == null ? each : copied.get(i));
            }
            projections.add(Rules.seq(projection));
        }
        SparkPlan copies = new ExpandExec(
            Rules.seq(projections), first.output(), slides, ExpandExec$.MODULE$.apply$default$4());
        for (int i = 0; i < filters.size(); i++) {
            copies = new FilterExec((Expression) filters.get(i), copies);
        }
        List groups = new ArrayList();
        for (int i = 0; i < grouped; i++) {
            groups.add(first.output().apply(i));
        }
        return new HashAggregateExec(
            Option.empty(), true, first.numShufflePartitions(), Rules.seq(groups), Rules.seq(merged), Rules.seq(results), grouped,
            first.resultExpressions(), copies);
    }

    /** The number of the column that Spark's TimeWindowing has added to an Expand; -1 where it is another one. */
    private static int window(ExpandExec expand) {
        int window = -1;
        for (int i = 0; i < expand.output().size(); i++) {
            if (((Attribute) expand.output().apply(i)).metadata().contains(MARKER)) {
                if (window >= 0) {
                    return -1;
                }
                window = i;
            }
        }
        for (Iterator all = expand.projections().iterator(); window >= 0 && all.hasNext();) {
            Seq projection = (Seq) all.next();
            for (int i = 0; i < projection.size(); i++) {
                Expression value = (Expression) projection.apply(i);
                boolean ours = i == window
                    ? value instanceof CreateNamedStruct && value.children().size() == 4
                    : value.semanticEquals((Expression) expand.output().apply(i));
                if (!ours) {
                    return -1;
                }
            }
        }
        return window;
    }

    /** The only column that the windows are computed from; null where there are several. */
    private static Attribute time(ExpandExec expand, int window) {
        Attribute time = null;
        for (Iterator all = expand.projections().iterator(); all.hasNext();) {
            Expression value = (Expression) ((Seq) all.next()).apply(window);
            if (value.references().size() != 1) {
                return null;
            }
            Attribute each = (Attribute) value.references().toSeq().head();
            if (!value.deterministic() || time != null && !time.exprId().equals(each.exprId())) {
                return null;
            }
            time = each;
        }
        return time;
    }

    /** Whether an aggregate has the same result in any order of its rows, but for an overflow under way. */
    private static boolean exact(AggregateExpression aggregate) {
        AggregateFunction function = aggregate.aggregateFunction();
        if (aggregate.isDistinct()) {
            return false;
        }
        if (function instanceof Count) {
            return true;
        }
        if (function.children().size() != 1) {
            return false;
        }
        DataType type = ((Expression) function.children().head()).dataType();
        boolean decimal = type instanceof DecimalType && ((DecimalType) type).precision() <= EXACT;
        if (function instanceof Sum) {
            return decimal || type instanceof IntegralType;
        }
        boolean ordered = type instanceof IntegralType || type instanceof DecimalType || type instanceof DateType
            || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof BooleanType;
        return ordered && (function instanceof Min || function instanceof Max);
    }

    public static class Replaced extends Rules.Each {
        private final Attribute column;
        private final Attribute by;

        Replaced(Attribute column, Attribute by) {
            this.column = column;
            this.by = by;
        }

        public Object apply(Object node) {
            return node instanceof Attribute && ((Attribute) node).exprId().equals(column.exprId()) ? by : node;
        }
    }

    private static boolean refers(Expression expression, Attribute attribute) {
        return expression.references().contains(attribute);
    }

    private static boolean only(Expression expression, Attribute attribute) {
        return expression.deterministic() && expression.references().size() == 1 && refers(expression, attribute);
    }

    private static Alias alias(Expression value, String name) {
        return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), none(), Option.empty(), none());
    }

    private static List attributes(List named) {
        List attributes = new ArrayList();
        for (int i = 0; i < named.size(); i++) {
            attributes.add(((NamedExpression) named.get(i)).toAttribute());
        }
        return attributes;
    }

    private static void addAll(List list, Seq more) {
        for (Iterator all = more.iterator(); all.hasNext();) {
            list.add(all.next());
        }
    }

    private static Seq none() {
        return Rules.seq(new ArrayList());
    }
}
