package streamsql;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneRules;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.json.CreateJacksonParser$;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.DoubleType$;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType$;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/**
 * Reads a JSON object in UTF-8, a line of a file or a message, into a row. It takes a strict subset of what Spark's parser takes, with the
 * same values; every other text is not read, so that the caller leaves it to Spark.
 */
public final class JsonLine {
    private static final int STRING = 0, LONG = 1, INT = 2, DOUBLE = 3, BOOLEAN = 4, TIMESTAMP = 5, DATE = 6, OTHER = 7;
    private static final int MOST_NAMES = 256;
    private static final int DEEPEST = 50;
    private static final int LONGEST_NUMBER = 100;
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGHS = 0x8080808080808080L;
    private static final double[] TENS = new double[23];

    static {
        double power = 1;
        for (int i = 0; i < TENS.length; i++) {
            TENS[i] = power; // exact up to 10^22
            power *= 10;
        }
    }

    /** The row of the last line that was read; the next one changes it. */
    public final SpecificInternalRow row;

    private final Map columns = new HashMap();
    private final int[] kinds;
    private final boolean[] unread;
    private final Function1[] converters;
    private final JsonFactory factory;
    private final boolean messages;
    private final ZoneRules zone;
    /** The number of the line that last had each column. */
    private final int[] lines;
    private int line;
    /** The names of the previous line in their order, and their columns, -1 for none: the next line mostly has the same. */
    private final byte[][] names = new byte[MOST_NAMES][];
    private final int[] ofNames = new int[MOST_NAMES];

    private byte[] bytes;
    private int at;
    private int end;
    private int from;
    private int to;
    private long minute = Long.MIN_VALUE;
    private long offset;

    /** Whether the columns can be read, but for lines that Spark's parser reads for it. */
    static boolean reads(StructType required, JSONOptions options) {
        int columns = 0;
        for (int i = 0; i < required.fields().length; i++) {
            StructField field = required.fields()[i];
            boolean ofText = field.name().equals(options.columnNameOfCorruptRecord());
            if (ofText && !field.dataType().equals(StringType$.MODULE$)) return false; // refused by Spark
            if (field.metadata().contains("EXISTS_DEFAULT") || field.dataType() instanceof VariantType) return false;
            if (!ofText) columns++;
        }
        return columns > 0 && options.singleVariantColumn().isEmpty() && !options.useUnsafeRow();
    }

    /** The columns that are read from the text: all but that of the text itself. */
    static StructType parsed(StructType required, JSONOptions options) {
        StructType schema = new StructType();
        for (int i = 0; i < required.fields().length; i++) {
            StructField field = required.fields()[i];
            if (!field.name().equals(options.columnNameOfCorruptRecord())) schema = schema.add(field);
        }
        return schema;
    }

    /**
     * required: the columns of a row. parser: Spark's. unread: those that need no text. messages: texts are those of
     * from_json, not lines of a file.
     */
    JsonLine(StructType required, JacksonParser parser, String[] unread, boolean messages) {
        JSONOptions options = parser.options();
        StructField[] fields = required.fields();
        kinds = new int[fields.length];
        lines = new int[fields.length];
        converters = new Function1[fields.length];
        this.unread = new boolean[fields.length];
        this.messages = messages;
        boolean defaults = !SQLConf$.MODULE$.get().legacyTimeParserPolicy().toString().equals("LEGACY");
        boolean times = defaults && options.timestampFormatInRead().isEmpty();
        boolean dates = defaults && options.dateFormatInRead().isEmpty();
        for (int i = 0; i < fields.length; i++) {
            kinds[i] = kind(fields[i].dataType(), times, dates);
            converters[i] = parser.makeConverter(fields[i].dataType());
            this.unread[i] = Arrays.binarySearch(unread, fields[i].name()) >= 0;
            if (!fields[i].name().equals(options.columnNameOfCorruptRecord())) {
                columns.put(fields[i].name(), Integer.valueOf(i));
            }
        }
        row = new SpecificInternalRow(required);
        factory = options.buildJsonFactory();
        zone = options.zoneId().getRules();
    }

    private static int kind(DataType type, boolean times, boolean dates) {
        if (type.equals(StringType$.MODULE$)) return STRING;
        if (type.equals(LongType$.MODULE$)) return LONG;
        if (type.equals(IntegerType$.MODULE$)) return INT;
        if (type.equals(DoubleType$.MODULE$)) return DOUBLE;
        if (type.equals(BooleanType$.MODULE$)) return BOOLEAN;
        if (times && type.equals(TimestampType$.MODULE$)) return TIMESTAMP;
        return dates && type.equals(DateType$.MODULE$) ? DATE : OTHER;
    }

    /** Whether the line is plain; then `row` has its values. */
    boolean read(byte[] bytes, int begin, int length) {
        this.bytes = bytes;
        at = begin;
        end = begin + length;
        line++;
        if (!opens('{')) return false;
        int missing = kinds.length;
        space();
        if (at < end && bytes[at] == '}') {
            at++;
        } else {
            for (int number = 0;; number++) {
                if (!opens('"')) return false;
                int column = name(number);
                if (column == -2 || !opens(':')) return false;
                space();
                if (column < 0) {
                    if (!skip(0)) return false;
                } else {
                    if (lines[column] == line || !value(column)) return false;
                    lines[column] = line;
                    missing--;
                }
                space();
                if (at >= end) return false;
                byte next = bytes[at++];
                if (next == '}') break;
                if (next != ',') return false;
            }
        }
        space();
        if (at < end) return false;
        for (int i = 0; missing > 0; i++) {
            if (lines[i] != line) {
                row.setNullAt(i);
                missing--;
            }
        }
        return true;
    }

    private void space() {
        while (at < end && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n')) at++;
    }

    private boolean opens(char what) {
        space();
        return at < end && bytes[at++] == what;
    }

    /** The column of a name, whose first character is next; -1 for none, -2 for a name that is not plain. */
    private int name(int number) {
        if (number < MOST_NAMES && names[number] != null) {
            byte[] name = names[number];
            if (at + name.length < end && bytes[at + name.length] == '"' && same(name)) {
                at += name.length + 1;
                return ofNames[number];
            }
        }
        if (!string() || !ascii()) return -2;
        String name = new String(bytes, from, to - from, StandardCharsets.ISO_8859_1);
        Object known = columns.get(name);
        int column = known == null ? -1 : ((Integer) known).intValue();
        if (number < MOST_NAMES && to - from < 1000) {
            names[number] = Arrays.copyOfRange(bytes, from, to);
            ofNames[number] = column;
        }
        return column;
    }

    private boolean same(byte[] name) {
        for (int i = 0; i < name.length; i++) {
            if (bytes[at + i] != name[i]) return false;
        }
        return true;
    }

    private boolean ascii() {
        for (int i = from; i < to; i++) {
            if (bytes[i] < 0) return false;
        }
        return true;
    }

    /** The rest of a string without escapes, of valid UTF-8: `from` and `to` are its ends. */
    private boolean string() {
        from = at;
        boolean ascii = true;
        for (int i = at;; i++) {
            while (i + 8 <= end && plain(Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + i))) i += 8;
            if (i >= end) return false;
            byte next = bytes[i];
            if (next == '"') {
                to = i;
                at = i + 1;
                return to - from < 1000000 && (ascii || UTF8String.fromBytes(bytes, from, to - from).isValid());
            }
            if (next < 0) ascii = false;
            else if (next == '\\' || next < ' ') return false;
        }
    }

    /** Whether eight bytes are ASCII without control characters, quotes and backslashes. */
    private static boolean plain(long eight) {
        long quote = eight ^ (ONES * '"');
        long escape = eight ^ (ONES * '\\');
        long special = ((quote - ONES) & ~quote) | ((escape - ONES) & ~escape) | ((eight - ONES * ' ') & ~eight) | eight;
        return (special & HIGHS) == 0;
    }

    /** Reads the value of a column, which begins here, into the row. */
    private boolean value(int column) {
        if (at >= end) return false;
        int kind = kinds[column];
        if (kind != OTHER && bytes[at] == 'n') {
            row.setNullAt(column);
            return word("null");
        }
        switch (kind) {
            case STRING:
                if (bytes[at++] != '"' || !string()) return false;
                row.update(column, unread[column] ? UTF8String.EMPTY_UTF8 : UTF8String.fromBytes(bytes, from, to - from));
                return true;
            case LONG:
            case INT:
                if (!number() || whole < 0) return false;
                if (kind == LONG) {
                    row.setLong(column, signed());
                } else {
                    if ((int) signed() != signed()) return false;
                    row.setInt(column, (int) signed());
                }
                return true;
            case DOUBLE:
                if (!number()) return false;
                return real(column);
            case BOOLEAN:
                boolean isTrue = bytes[at] == 't';
                row.setBoolean(column, isTrue);
                return word(isTrue ? "true" : "false");
            case TIMESTAMP:
                int begin = at;
                if (bytes[at++] != '"' || !string()) return false;
                if (time()) {
                    row.setLong(column, micros);
                    return true;
                }
                at = begin;
                return other(column);
            case DATE:
                if (bytes[at++] != '"' || !string() || to - from != 10 || !day()) return false;
                row.setInt(column, (int) days);
                return true;
            default:
                return other(column);
        }
    }

    private boolean word(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (at >= end || bytes[at++] != word.charAt(i)) return false;
        }
        return true;
    }

    /** A value of a type whose texts Spark's own converter reads. */
    private boolean other(int column) {
        int begin = at;
        if (!skip(0)) return false;
        try {
            // Bytes of its own: Spark copies the texts of nested values by their distance from the first byte.
            byte[] value = Arrays.copyOfRange(bytes, begin, at);
            JsonParser parser = messages
                ? CreateJacksonParser$.MODULE$.utf8String(factory, UTF8String.fromBytes(value))
                : factory.createParser(value);
            parser.nextToken();
            row.update(column, converters[column].apply(parser));
            parser.close();
            return true;
        } catch (Exception notOfThisType) {
            return false;
        }
    }

    /** What the last number was: its digits as a whole number without sign if it has no fraction or exponent, else -1. */
    private long whole;
    private boolean negative;
    /** All its digits as a number, -1 if they are more than 18, and how many are behind the point; -1 for an exponent. */
    private long digits;
    private int behind;

    private long signed() {
        return negative ? -whole : whole;
    }

    /** A number, between `from` and `to`. */
    private boolean number() {
        from = at;
        negative = at < end && bytes[at] == '-';
        if (negative) at++;
        int first = at;
        digits = 0;
        behind = 0;
        while (digit()) digits = digits * 10 + (bytes[at++] - '0');
        int count = at - first;
        if (count == 0 || (count > 1 && bytes[first] == '0')) return false;
        boolean isWhole = true;
        if (at < end && bytes[at] == '.') {
            int point = at++;
            while (digit()) digits = digits * 10 + (bytes[at++] - '0');
            behind = at - point - 1;
            if (behind == 0) return false;
            count += behind;
            isWhole = false;
        }
        if (count > 18) digits = -1;
        if (at < end && (bytes[at] == 'e' || bytes[at] == 'E')) {
            at++;
            if (at < end && (bytes[at] == '-' || bytes[at] == '+')) at++;
            int power = at;
            while (digit()) at++;
            if (at == power) return false;
            isWhole = false;
            behind = -1;
        }
        to = at;
        whole = isWhole ? digits : -1;
        return to - from <= LONGEST_NUMBER;
    }

    private boolean digit() {
        return at < end && bytes[at] >= '0' && bytes[at] <= '9';
    }

    private boolean real(int column) {
        if (behind == 0 && (digits < 0 || (digits == 0 && negative))) return false;
        if (digits >= 0 && behind >= 0 && digits < 1L << 53 && behind < TENS.length) {
            double value = digits / TENS[behind]; // both exact, so correctly rounded
            row.setDouble(column, negative ? -value : value);
        } else if (behind == 0) {
            row.setDouble(column, negative ? -digits : digits);
        } else {
            String text = new String(bytes, from, to - from, StandardCharsets.ISO_8859_1);
            row.setDouble(column, Double.parseDouble(text));
        }
        return true;
    }

    /** Days since 1970 of the last `day`. */
    private long days;
    /** Microseconds since 1970 of the last `time`. */
    private long micros;

    /** yyyy-MM-dd at `from`, of the years from 1900. */
    private boolean day() {
        int year = digits(from, 4), month = digits(from + 5, 2), day = digits(from + 8, 2);
        if (bytes[from + 4] != '-' || bytes[from + 7] != '-' || year < 1900 || month < 1 || month > 12 || day < 1) {
            return false;
        }
        boolean leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        int most = month == 2 ? (leap ? 29 : 28) : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
        if (day > most) return false;
        // Years begin in March, so that the leap day is their last.
        int since = month > 2 ? year : year - 1;
        int ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
        days = since * 365L + since / 4 - since / 100 + since / 400 + ofYear - 719468;
        return true;
    }

    /** A number of so many digits, -1 if one is none. */
    private int digits(int begin, int count) {
        int number = 0;
        for (int i = begin; i < begin + count; i++) {
            if (bytes[i] < '0' || bytes[i] > '9') return -1;
            number = number * 10 + (bytes[i] - '0');
        }
        return number;
    }

    /** yyyy-MM-dd, a blank or T, HH:mm:ss, a fraction of up to six digits or none, Z or none. */
    private boolean time() {
        int length = to - from;
        if (length < 19 || (bytes[from + 10] != ' ' && bytes[from + 10] != 'T') || !day()) return false;
        int hour = digits(from + 11, 2), minutes = digits(from + 14, 2), seconds = digits(from + 17, 2);
        if (bytes[from + 13] != ':' || bytes[from + 16] != ':') return false;
        if (hour < 0 || hour > 23 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59) return false;
        int last = to;
        boolean utc = bytes[to - 1] == 'Z';
        if (utc) last--;
        int fraction = 0;
        if (last > from + 19) {
            int count = last - from - 20;
            if (bytes[from + 19] != '.' || count < 1 || count > 6) return false;
            fraction = digits(from + 20, count);
            if (fraction < 0) return false;
            for (int i = count; i < 6; i++) fraction *= 10;
        }
        long ofMinute = (days * 24 + hour) * 60 + minutes;
        if (!utc && ofMinute != minute && !findOffset(ofMinute)) return false;
        micros = (ofMinute * 60 + seconds - (utc ? 0 : offset)) * 1000000 + fraction;
        return true;
    }

    /** The offset of the zone in a local minute, in seconds, if it has one in all of the minute. */
    private boolean findOffset(long ofMinute) {
        List offsets = zone.getValidOffsets(LocalDateTime.ofEpochSecond(ofMinute * 60, 0, ZoneOffset.UTC));
        List later = zone.getValidOffsets(LocalDateTime.ofEpochSecond(ofMinute * 60 + 60, 0, ZoneOffset.UTC));
        if (offsets.size() != 1 || !offsets.equals(later)) return false;
        minute = ofMinute;
        offset = ((ZoneOffset) offsets.get(0)).getTotalSeconds();
        return true;
    }

    /** Passes over a value. */
    private boolean skip(int depth) {
        space();
        if (at >= end || depth > DEEPEST) return false;
        switch (bytes[at]) {
            case '"':
                at++;
                return escaped();
            case 'n':
                return word("null");
            case 't':
                return word("true");
            case 'f':
                return word("false");
            case '[':
                at++;
                return items(depth, false, ']');
            case '{':
                at++;
                return items(depth, true, '}');
            default:
                return number();
        }
    }

    private boolean items(int depth, boolean named, char last) {
        space();
        if (at < end && bytes[at] == last) {
            at++;
            return true;
        }
        for (;;) {
            if (named && !(opens('"') && escaped() && opens(':'))) return false;
            if (!skip(depth + 1)) return false;
            space();
            if (at >= end) return false;
            byte next = bytes[at++];
            if (next == last) return true;
            if (next != ',') return false;
        }
    }

    /** The rest of a string, with escapes. */
    private boolean escaped() {
        int begin = at;
        boolean ascii = true;
        for (;;) {
            if (at >= end || at - begin > 1000000) return false;
            byte next = bytes[at++];
            if (next == '"') break;
            if (next < 0) ascii = false;
            else if (next < ' ') return false;
            if (next == '\\') {
                if (at >= end) return false;
                byte which = bytes[at++];
                if (which == 'u') {
                    for (int i = 0; i < 4; i++) {
                        if (at >= end || Character.digit((char) bytes[at++], 16) < 0) return false;
                    }
                } else if ("\"\\/bfnrt".indexOf(which) < 0) {
                    return false;
                }
            }
        }
        return ascii || UTF8String.fromBytes(bytes, begin, at - 1 - begin).isValid();
    }
}
