package streamsql;

import java.io.IOException;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.ArrayList;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Starts Spark's first session without the functions of MLlib. Their registration starts Scala's reflection, a sixth
 * of the time until the first row of a query, and only Column objects of MLlib's own API can call them, not SQL.
 */
public final class SessionStart {
    private static final String PROVIDERS =
        "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider";

    private SessionStart() {}

    /** A new session with the extensions of all jars but MLlib's. options: static settings of the session. */
    public static SparkSession start(SparkContext context, HashMap options) {
        Thread thread = Thread.currentThread();
        ClassLoader own = thread.getContextClassLoader();
        thread.setContextClassLoader(new WithoutMllib(own != null ? own : SparkSession.class.getClassLoader()));
        try {
            return new SparkSession(context, options);
        } finally {
            thread.setContextClassLoader(own);
        }
    }

    /** Spark finds the extensions of a session with the ServiceLoader of the thread's class loader. */
    private static final class WithoutMllib extends ClassLoader {
        WithoutMllib(ClassLoader parent) {
            super(parent);
        }

        public Enumeration getResources(String name) throws IOException {
            Enumeration all = super.getResources(name);
            if (!PROVIDERS.equals(name)) return all;
            List kept = new ArrayList();
            while (all.hasMoreElements()) {
                URL file = (URL) all.nextElement();
                if (file.getPath().indexOf("/spark-mllib_") < 0) kept.add(file);
            }
            return Collections.enumeration(kept);
        }
    }
}
