package streamsql;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.StringSplit;
import org.apache.spark.sql.catalyst.expressions.StringSplitSQL;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.StringType$;

/**
 * split_part(text, '/', n) without a regular expression. Spark quotes the delimiter as one, \Q/\E, for which Java
 * searches with a Matcher; a pattern of one character, escaped where it is special, Java splits by a loop.
 */
public class SplitByCharacter extends Rules.Guarded {
    private static final String SPECIAL = ".$|()[{^?*+\\";

    protected TreeNode changed(TreeNode plan) {
        return Rules.uses((SparkPlan) plan, StringSplitSQL.class) ? ((SparkPlan) plan).transformAllExpressions(new Split()) : plan;
    }

    public static class Split extends Rules.Each {
        public Object apply(Object node) {
            return split((Expression) node);
        }
    }

    private static Expression split(Expression same) {
        if (!(same instanceof StringSplitSQL) || !(((StringSplitSQL) same).delimiter() instanceof Literal)) {
            return same;
        }
        Expression text = ((StringSplitSQL) same).str();
        Literal delimiter = (Literal) ((StringSplitSQL) same).delimiter();
        String pattern = String.valueOf(delimiter.value());
        boolean plain = text.dataType().equals(StringType$.MODULE$) && delimiter.dataType().equals(StringType$.MODULE$);
        if (!plain || delimiter.value() == null || pattern.length() != 1 || pattern.charAt(0) > 127) {
            return same;
        }
        String escaped = SPECIAL.indexOf(pattern) >= 0 ? "\\" + pattern : pattern;
        return new StringSplit(text, Literal$.MODULE$.apply(escaped), Literal$.MODULE$.apply(Integer.valueOf(-1)));
    }
}
