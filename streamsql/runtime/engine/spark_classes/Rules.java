package streamsql;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.package$;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * The rules of the console over Spark's optimized plans. Spark finds the class by META-INF/services in this jar. A rule
 * changes how a row is read, before Spark plans exchanges and sorts, and no operator. The rules are active only on the
 * version of Spark that the jar was built for, and in sessions whose setting does not switch them off.
 */
public class Rules implements SparkSessionExtensionsProvider {
    /** The setting of a session that switches all rules off: SET streamsql.rules = off. */
    private static final String SETTING = "spark.streamsql.rules";
    private static final String BUILT_FOR = "/streamsql/spark-version";
    private static final Logger LOG = LoggerFactory.getLogger(Rules.class);
    private static final AtomicLong FALLBACKS = new AtomicLong();
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    public Object apply(Object extensions) {
        SparkSessionExtensions to = (SparkSessionExtensions) extensions;
        String warning = warning();
        if (warning.isEmpty()) {
            to.injectPreCBORule(new OfSession(new JsonLines()));
            to.injectPreCBORule(new OfSession(new JsonMessages()));
        } else if (WARNED.compareAndSet(false, true)) {
            LOG.warn(warning);
        }
        return BoxedUnit.UNIT;
    }

    /** Why the rules are not active in this JVM; empty where they are. */
    public static String warning() {
        String builtFor = builtFor();
        String version = package$.MODULE$.SPARK_VERSION();
        if (version.equals(builtFor)) return "";
        return "the rules of streamsql are not active: they are built for Spark " + builtFor + ", and this is " + version;
    }

    private static String builtFor() {
        try {
            InputStream file = Rules.class.getResourceAsStream(BUILT_FOR);
            BufferedReader lines = new BufferedReader(new InputStreamReader(file, StandardCharsets.UTF_8));
            try {
                return lines.readLine();
            } finally {
                lines.close();
            }
        } catch (IOException unreadable) {
            return "no version";
        }
    }

    /** How often a rule has failed since the start of this JVM, so that Spark's own plan was used. */
    public static long fallbacks() {
        return FALLBACKS.get();
    }

    /** Logs and counts the failure of a rule. Throws what is no failure of the rule itself. */
    static void fellBack(Class rule, Throwable failure) {
        boolean own = failure instanceof Exception || failure instanceof LinkageError;
        if (!own || failure instanceof InterruptedException) throw unchecked(failure);
        FALLBACKS.incrementAndGet();
        LOG.warn("the rule " + rule.getSimpleName() + " failed, and Spark's own plan is used", failure);
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

    /** A rule that leaves a plan as it is where it is switched off, or fails. */
    public abstract static class Guarded extends Rule {
        protected abstract LogicalPlan changed(LogicalPlan plan);

        public TreeNode apply(TreeNode plan) {
            if (SQLConf.get().getConfString(SETTING, "on").equals("off")) return plan;
            try {
                return changed((LogicalPlan) plan);
            } catch (Throwable failure) {
                fellBack(getClass(), failure);
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

    static Seq seq(List list) {
        return CollectionConverters.asScala(list).toSeq();
    }

    /** The same exception, thrown as it is where only unchecked ones are declared: Spark tells them by their class. */
    static RuntimeException unchecked(Throwable cause) {
        Platform.throwException(cause);
        return new IllegalStateException(cause);
    }
}
