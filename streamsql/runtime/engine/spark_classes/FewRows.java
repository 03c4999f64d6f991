package streamsql;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map.Entry;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ExpandExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.TextBasedFileFormat;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import scala.collection.Iterator;

/**
 * A micro-batch of few rows runs without generated code: to write it costs more than it saves. Decided for each, from
 * the offsets of its topics, the sizes of its files and the rows of its state, by the settings of the query's own
 * session. Not where the user has chosen. See few_rows.py for queries that are known to have few rows.
 */
public class FewRows extends Rules.Guarded {
    private static final String WHOLE_STAGE = "spark.sql.codegen.wholeStage";
    private static final String FACTORY = "spark.sql.codegen.factoryMode";
    private static final String QUERY = "sql.streaming.queryId";
    /** In the settings of a query's session where this rule has set the two. */
    private static final String CHOSEN = "spark.streamsql.fewRows.chosen";
    private static final int MESSAGES = 1000;
    /** Of all states of a query: each of them may be read, tested and emitted in any micro-batch. */
    private static final int STATE_ROWS = 5000;
    private static final long BYTES = 1 << 18;
    /** That one row may belong to. */
    private static final int WINDOWS = 20;

    protected String setting() {
        return "spark.streamsql.fewRows";
    }

    protected TreeNode changed(TreeNode plan) {
        SQLConf conf = SQLConf.get();
        boolean chosen = conf.contains(CHOSEN);
        boolean given = conf.contains(WHOLE_STAGE) || conf.contains(FACTORY);
        if (!isStream() || (given && !chosen) || !readsStream(plan)) {
            return plan;
        }
        boolean small = isSmall(plan);
        if (small && !chosen) {
            conf.setConfString(WHOLE_STAGE, "false");
            conf.setConfString(FACTORY, "NO_CODEGEN");
            conf.setConfString(CHOSEN, "true");
        } else if (chosen && !small) {
            conf.unsetConf(WHOLE_STAGE);
            conf.unsetConf(FACTORY);
            conf.unsetConf(CHOSEN);
        }
        return plan;
    }

    /** Whether a streaming query plans, so that the settings are those of its own session. */
    private static boolean isStream() {
        return context().getLocalProperty(QUERY) != null;
    }

    private static SparkContext context() {
        return (SparkContext) SparkContext$.MODULE$.getActive().get();
    }

    /** Whether a plan reads a micro-batch; the plans that a function over micro-batches makes read its rows. */
    private static boolean readsStream(TreeNode plan) {
        boolean file = plan instanceof FileSourceScanExec && ((FileSourceScanExec) plan).stream().isDefined();
        boolean found = file || plan instanceof MicroBatchScanExec;
        for (Iterator all = plan.children().iterator(); !found && all.hasNext();) {
            found = readsStream((TreeNode) all.next());
        }
        return found;
    }

    /** Whether all that a plan reads is a micro-batch of few rows, of which no operation makes many. */
    private static boolean isSmall(TreeNode plan) {
        boolean many = plan instanceof ExpandExec && ((ExpandExec) plan).projections().size() > WINDOWS;
        if (many || plan instanceof GenerateExec) return false;
        if (plan instanceof StatefulOperator && !isSmallState((SparkPlan) plan)) return false;
        boolean small = !plan.children().isEmpty() || isSmallScan((SparkPlan) plan);
        for (Iterator all = plan.children().iterator(); small && all.hasNext();) {
            small = isSmall((TreeNode) all.next());
        }
        return small;
    }

    private static boolean isSmallState(SparkPlan operator) {
        UUID query = UUID.fromString(context().getLocalProperty(QUERY));
        StreamExecution running = (StreamExecution) operator.session().sharedState().activeStreamingQueries().get(query);
        StreamingQueryProgress last = running.lastProgress();
        if (last == null || last.stateOperators().length == 0) { // none since the start
            return ((StatefulOperator) operator).getStateInfo().storeVersion() == 0;
        }
        long rows = 0;
        for (int i = 0; i < last.stateOperators().length; i++) {
            rows += last.stateOperators()[i].numRowsTotal();
        }
        return rows <= STATE_ROWS;
    }

    private static boolean isSmallScan(SparkPlan leaf) {
        if (leaf instanceof FileSourceScanExec) {
            FileSourceScanExec scan = (FileSourceScanExec) leaf;
            boolean texts = scan.relation().fileFormat() instanceof TextBasedFileFormat;
            return scan.stream().isDefined() && texts && scan.relation().location().sizeInBytes() <= BYTES;
        }
        if (!(leaf instanceof MicroBatchScanExec)) return false;
        MicroBatchScanExec scan = (MicroBatchScanExec) leaf;
        boolean kafka = scan.stream().getClass().getSimpleName().equals("KafkaMicroBatchStream");
        return kafka && messages(scan.start().json(), scan.end().json()) <= MESSAGES;
    }

    /** The number of messages between two offsets, {"topic":{"partition":offset}}. */
    private static long messages(String start, String reached) {
        long number = 0;
        try {
            JsonNode before = (JsonNode) Json.READER.readTree(start);
            JsonNode after = (JsonNode) Json.READER.readTree(reached);
            for (Object topic : after.properties().toArray()) {
                JsonNode ends = (JsonNode) ((Entry) topic).getValue();
                for (Object partition : ends.properties().toArray()) {
                    Entry end = (Entry) partition;
                    JsonNode begins = (JsonNode) before.path((String) ((Entry) topic).getKey());
                    JsonNode from = (JsonNode) begins.path((String) end.getKey());
                    if (!from.isNumber()) return Long.MAX_VALUE; // a new partition
                    number += ((JsonNode) end.getValue()).asLong() - from.asLong();
                }
            }
        } catch (JsonProcessingException notKafkas) {
            return Long.MAX_VALUE;
        }
        return number;
    }

    /** Loaded with the first micro-batch of a topic, not with the session. */
    private static class Json {
        static final ObjectMapper READER = new ObjectMapper();
    }
}
