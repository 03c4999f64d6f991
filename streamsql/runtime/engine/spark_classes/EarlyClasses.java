package streamsql;

import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.spark.api.python.PythonGatewayServer;

/**
 * The main class of Spark's JVM where there is no start-up cache yet: a thread loads the classes of a first
 * query beside the start, in the order in which a query needs them. Most of such a start is one thread that
 * waits for its next class. They are not initialized, so that nothing of them runs earlier than else.
 */
public class EarlyClasses extends Thread {
    /** The names, a line each: tests/early_classes.py. */
    static final String LIST = "/streamsql/early_classes.txt";

    private EarlyClasses() {
        super("early-classes");
        this.setDaemon(true);
    }

    public static void main(String[] arguments) {
        if (Runtime.getRuntime().availableProcessors() > 1) {
            new EarlyClasses().start();
        }
        PythonGatewayServer.main(arguments);
    }

    public void run() {
        ClassLoader loader = EarlyClasses.class.getClassLoader();
        try {
            InputStream list = EarlyClasses.class.getResourceAsStream(LIST);
            BufferedReader names = new BufferedReader(new InputStreamReader(list, StandardCharsets.UTF_8));
            for (String name = names.readLine(); name != null; name = names.readLine()) {
                try {
                    Class.forName(name, false, loader);
                } catch (Throwable missing) { // of another version of Java or Spark
                    continue;
                }
            }
            names.close();
        } catch (Throwable unreadable) { // the start goes on without it
            return;
        }
    }
}
