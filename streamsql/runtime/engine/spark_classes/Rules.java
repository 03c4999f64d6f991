package streamsql;

import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** The rules of the console over Spark's plans. Spark finds the class by META-INF/services in this jar. */
public class Rules implements SparkSessionExtensionsProvider {
    public Object apply(Object extensions) {
        SparkSessionExtensions to = (SparkSessionExtensions) extensions;
        to.injectOptimizerRule(new OfSession(new EventTimes.FiltersFirst()));
        to.injectColumnar(new OfSession(new Physical(new FewRows())));
        to.injectColumnar(new OfSession(new Physical(new EventTimes())));
        to.injectColumnar(new OfSession(new Physical(new SplitByCharacter())));
        to.injectColumnar(new OfSession(new Physical(new CurrentTimes())));
        to.injectColumnar(new OfSession(new Physical(new JsonLines())));
        to.injectColumnar(new OfSession(new Physical(new JsonMessages())));
        return BoxedUnit.UNIT;
    }

    /** A rule, the same for all sessions. */
    public static class OfSession extends AbstractFunction1 {
        private final Object rule;

        OfSession(Object rule) {
            this.rule = rule;
        }

        public Object apply(Object session) {
            return rule;
        }
    }

    public static class Physical extends ColumnarRule {
        private final Guarded rule;

        Physical(Guarded rule) {
            this.rule = rule;
        }

        public Rule preColumnarTransitions() {
            return rule;
        }
    }

    /** A rule that leaves a plan as it is where Spark's classes are not those that it was written for. */
    public abstract static class Guarded extends Rule {
        protected abstract TreeNode changed(TreeNode plan);

        /** Name of the setting that turns the rule off; null for none. */
        protected String setting() {
            return null;
        }

        public TreeNode apply(TreeNode plan) {
            if (setting() != null && SQLConf.get().getConfString(setting(), "on").equals("off")) {
                return plan;
            }
            try {
                return changed(plan);
            } catch (LinkageError otherSpark) {
                return plan;
            } catch (RuntimeException otherSpark) {
                return plan;
            }
        }
    }

    /** A change of each node of a plan, or expression, by transformUp. */
    public abstract static class Each extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return true;
        }
    }

    /** Whether a plan has a node of a class: most have none, and to ask costs less than transformUp. */
    static boolean has(TreeNode plan, Class type) {
        boolean found = type.isInstance(plan);
        for (Iterator all = plan.children().iterator(); !found && all.hasNext();) {
            found = has((TreeNode) all.next(), type);
        }
        return found;
    }

    /** Whether an expression of a plan, or of a part of it, has a node of a class. */
    static boolean uses(SparkPlan plan, Class type) {
        boolean found = false;
        for (Iterator all = plan.expressions().iterator(); !found && all.hasNext();) {
            found = has((TreeNode) all.next(), type);
        }
        for (Iterator all = plan.children().iterator(); !found && all.hasNext();) {
            found = uses((SparkPlan) all.next(), type);
        }
        return found;
    }

    /** A node with other children; the same node if they are the same. */
    static TreeNode with(TreeNode node, List children) {
        boolean differs = false;
        for (int i = 0; i < children.size(); i++) {
            differs = differs || children.get(i) != node.children().apply(i);
        }
        return differs ? node.withNewChildren(seq(children)) : node;
    }

    static Seq seq(List list) {
        return CollectionConverters.asScala(list).toSeq();
    }

    /** The same exception, thrown as it is where only unchecked ones are declared: Spark tells them by their class. */
    static RuntimeException unchecked(Throwable cause) {
        Platform.throwException(cause);
        return new IllegalStateException(cause);
    }
}
