"""Database tables as sinks. EXPLAIN PYSPARK prints this code, so it is self-contained."""

import hashlib
import uuid


class JdbcTable:
    """Writes rows into a table of a database; with a key, a row replaces the row with the same key.

    Spark writes a micro-batch into a staging table. Then one transaction copies the rows and records
    the batch_id in streamsql_batches, so that a micro-batch that is retried is skipped.
    """

    NOTES = "streamsql_batches"
    OP = "_op"
    TYPES = {
        "mysql": {"timestamp": "DATETIME(6)", "timestamp_ntz": "DATETIME(6)", "binary": "LONGBLOB"},
        "duckdb": {"boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT"},
    }
    """Types where Spark's would lose digits or bytes, or where the database has none of that name."""
    NO_NAN = {"sqlite": "NaN, which SQLite takes for NULL", "mysql": "NaN, which MySQL does not have"}
    KEY_BYTES = 3072
    """How long a key of MySQL may be."""

    def __init__(self, table, key=()):
        self.table = table
        self.key = list(key)
        self.options = {}
        self._compared = False

    def option(self, name, value):
        if name == "url" and value.startswith("jdbc:mariadb:"):
            # Spark knows the dialect by the URL of MySQL, which the driver of MariaDB takes with this word.
            rest = value.removeprefix("jdbc:mariadb:")
            value = f"jdbc:mysql:{rest}{'&' if '?' in rest else '?'}permitMysqlScheme"
        self.options[name] = value
        return self

    def _is_of(self, database):
        return self.options["url"].startswith(f"jdbc:{database}:")

    def write(self, batch, batch_id):
        """Write one micro-batch of a streaming query."""
        if not batch.isEmpty():
            query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            self._store(batch, query, batch_id)

    def insert(self, rows):
        """Write the rows of a static DataFrame once."""
        self._store(rows, "", 0)

    def write_changes(self, changes, version):
        """Apply changes to the rows of the table. One with _op +I or +U replaces the row with the same key,
        or is added; the row with the key of one with -D is deleted.
        """
        query = changes.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        self._store(changes.where(f"{self.OP} <> '-U'"), query, version, changes=True)

    def _store(self, rows, query, batch_id, changes=False):
        connection = None
        try:
            connection = self._connect(rows.sparkSession)
            if query and self._last_batch(connection, query) >= batch_id:
                # It is computed nevertheless: the state of the query may not have been saved then.
                rows.write.format("noop").mode("append").save()
                return
            staging = self._staging(query)
            target_rows = rows.drop(self.OP) if changes else rows
            self._check_driver(target_rows, connection)
            self._make_target(target_rows, connection)
            self._run(connection, f"DROP TABLE IF EXISTS {staging}")
            self._make_staging(rows, staging, connection)
            self._save(rows if changes else self._newest(rows), staging)
            connection.setAutoCommit(False)
            if self.key:
                self._delete(staging, connection, changes)
            for text in self._take_over(target_rows, staging, changes):
                self._run(connection, text)
            if query:
                forget = f"DELETE FROM {self.NOTES} WHERE query = ? AND target = ?"
                self._run(connection, forget, query, self.table)
                note = f"INSERT INTO {self.NOTES} VALUES (?, ?, ?)"
                self._run(connection, note, query, self.table, str(batch_id))
            connection.commit()
            connection.setAutoCommit(True)
            self._run(connection, f"DROP TABLE {staging}")
        except Exception as error:
            java = getattr(error, "java_exception", None)
            if java is None:
                raise
            raise RuntimeError(f"the table {self.table}: {self._reason(java)}") from None
        finally:
            if connection is not None:
                connection.close()  # rolls back an open transaction

    def _reason(self, java):
        """What an exception of Java says that its causes end with."""
        while java.getCause() is not None:
            java = java.getCause()
        why = java.getMessage() or ""
        if " " not in why:  # for an unknown host Java's message is only its name
            return f"{java.getClass().getSimpleName()} {why}"
        return why.removeprefix("[USER_RAISED_EXCEPTION] ").partition(" SQLSTATE: P0001")[0]

    def _staging(self, query):
        """The name of the staging table of one writer, in the schema of the table: databases cut long names.
        A query that starts again has the same, so that it removes what is left of a failed run.
        """
        writer = hashlib.md5(f"{self.table} {query or uuid.uuid4()}".encode()).hexdigest()
        last = self.table[-1:]
        quoted = self.table.rfind(last, 0, -1) if last in ('"', "`") else len(self.table)
        schema = self.table[: self.table.rfind(".", 0, quoted) + 1]
        return f"{schema}streamsql_staging_{writer[:24]}"

    def _jvm(self, spark):
        return spark.sparkContext._jvm

    def _connect(self, spark):
        jvm = self._jvm(spark)
        settings = jvm.java.util.HashMap()
        for name, value in {**self.options, "dbtable": self.table}.items():
            settings.put(name, value)
        options = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(
            jvm.PythonUtils.toScalaMap(settings)
        )
        self.dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(self.options["url"])
        return self.dialect.createConnectionFactory(options).apply(-1)

    def _is_mariadb(self, connection):
        about = connection.getMetaData()
        return "MariaDB" in about.getDatabaseProductName() + about.getDatabaseProductVersion()

    def _check_driver(self, rows, connection):
        """Raise RuntimeError where MySQL's driver takes MariaDB for an old MySQL and cuts times."""
        times = [f.name for f in rows.schema.fields if "timestamp" in f.dataType.simpleString()]
        of_mysql = self._is_of("mysql") and "permitMysqlScheme" not in self.options["url"]
        if of_mysql and times and self._is_mariadb(connection):
            raise RuntimeError(
                f"the driver of MySQL would cut the fractions of seconds of {', '.join(times)}: the server"
                " is MariaDB; use its driver, url 'jdbc:mariadb://…'"
            )

    def _run(self, connection, text, *values):
        """Execute a statement. Returns the first value of its rows as a text; None if it has no rows."""
        statement = connection.prepareStatement(text)
        try:
            for number, value in enumerate(values, 1):
                statement.setString(number, value)
            rows = statement.getResultSet() if statement.execute() else None
            return rows.getString(1) if rows is not None and rows.next() else None
        finally:
            statement.close()

    def _last_batch(self, connection, query):
        self._run(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.NOTES} "
            "(query VARCHAR(36), target VARCHAR(200), batch VARCHAR(20), PRIMARY KEY (query, target))"
            + self._engine(),
        )
        last = f"SELECT batch FROM {self.NOTES} WHERE query = ? AND target = ?"
        return int(self._run(connection, last, query, self.table) or -1)

    def _make_target(self, rows, connection):
        """Create the table if it does not exist, with a unique index on the key."""
        try:
            self._run(connection, f"SELECT 1 FROM {self.table} WHERE 1 = 0")
            self._check_keys(rows, connection)
        except Exception as error:
            if getattr(error, "java_exception", None) is None:
                raise
            types = self._key_types(rows, connection) | self._given_types(rows)
            self._make_table(rows, self.table, connection, types, self._given("createTableOptions"))
            if self.key:
                name = f"streamsql_key_{hashlib.md5(self.table.encode()).hexdigest()[:24]}"
                self._run(
                    connection, f"CREATE UNIQUE INDEX {name} ON {self.table} ({self._listed(self.key)})"
                )
                self._check_keys(rows, connection)

    def _check_keys(self, rows, connection):
        """Raise RuntimeError when the table takes different texts for one key, by its collation or type, or
        has no transactions.
        """
        if self._is_of("mysql") and not self._compared:
            schema, _, name = self.table.replace("`", "").rpartition(".")
            place = f"table_name = '{name}' AND table_schema = " + (f"'{schema}'" if schema else "database()")
            other = f"SELECT count(*) FROM information_schema.tables WHERE {place} AND engine <> 'InnoDB'"
            if int(self._run(connection, other)):
                raise RuntimeError(
                    f"the table {self.table} has no transactions: ALTER TABLE … ENGINE = InnoDB"
                )
        texts = [
            f.name
            for f in rows.schema.fields
            if self._is_key(f.name) and "string" in f.dataType.simpleString()
        ]
        for name in () if self._compared else texts:
            values = " UNION ALL ".join(f"SELECT {text}" for text in ("'a'", "'A'", "'a '"))
            first = f"SELECT {self._listed([name])} AS k FROM {self.table} WHERE 1 = 0"
            keys = f"SELECT DISTINCT k FROM ({first} UNION ALL {values}) a"
            try:
                different = int(self._run(connection, f"SELECT count(*) FROM ({keys}) b"))
            except Exception:
                continue  # no column of text: the database says so when rows come
            if different < 3:
                raise RuntimeError(
                    f"the table {self.table} takes different texts in its KEY column {name} for the same:"
                    " 'a' and 'A', or 'a' and 'a '; give the column a type and a collation that compare texts"
                    " exactly"
                )
        self._compared = True

    def _is_key(self, name):
        return name.casefold() in {k.casefold() for k in self.key}

    def _given(self, name):
        """The value of an option, in whichever case it is written; "" without it."""
        return next((v for k, v in self.options.items() if k.casefold() == name.casefold()), "")

    def _given_types(self, rows):
        """The types of the columns that createTableColumnTypes names."""
        from pyspark.sql.types import StructType

        listed = (
            StructType.fromDDL(given) if (given := self._given("createTableColumnTypes")) else StructType()
        )
        kinds = {f.name.casefold(): f.dataType.simpleString().upper() for f in listed.fields}
        return {c: kinds[c.casefold()] for c in rows.columns if c.casefold() in kinds}

    def _make_table(self, rows, table, connection, types=None, options=""):
        """Create a table with Spark's types; Spark's own writer fails for databases without a dialect. types:
        of columns that have others; options: text behind the columns.
        """
        jvm = self._jvm(rows.sparkSession)
        others = self.TYPES.get(self.options["url"].split(":")[1], {})
        columns = []
        for field in rows.schema.fields:
            one = rows.select("`" + field.name.replace("`", "``") + "`")._jdf.schema()
            column = jvm.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils.schemaString(
                self.dialect, one, False, jvm.scala.Option.empty()
            )
            kind = (types or {}).get(field.name) or others.get(field.dataType.simpleString())
            if kind:
                column = f"{self._listed([field.name])} {kind}" + ("" if field.nullable else " NOT NULL")
            columns.append(column)
        more = " CHARACTER SET utf8mb4" if self._is_of("mysql") else ""
        self._run(connection, f"CREATE TABLE {table} ({', '.join(columns)}){self._engine()}{more} {options}")

    def _engine(self):
        return " ENGINE = InnoDB" if self._is_of("mysql") else ""

    def _make_staging(self, rows, staging, connection):
        """Create the staging table. In MySQL it has the collations of the table, so that keys compare."""
        if not self._is_of("mysql"):
            self._make_table(rows, staging, connection)
            return
        columns = [self._listed([c]) for c in rows.columns if c != self.OP]
        op = [f"CAST('' AS CHAR(2)) AS {self.OP}"] if self.OP in rows.columns else []
        copied = f"SELECT {', '.join(columns + op)} FROM {self.table} WHERE 1 = 0"
        self._run(connection, f"CREATE TABLE {staging} AS {copied}")

    def _key_types(self, rows, connection):
        """The types of key columns of MySQL: as long as an index may have them, compared byte by byte."""
        if not self._is_of("mysql"):
            return {}
        kinds = {f.name: f.dataType.simpleString() for f in rows.schema.fields if self._is_key(f.name)}
        long = [name for name, kind in kinds.items() if kind in ("string", "binary")]
        length = (self.KEY_BYTES - 32 * (len(kinds) - len(long))) // 4 // max(len(long), 1)
        collation = "utf8mb4_nopad_bin" if self._is_mariadb(connection) else "utf8mb4_0900_bin"
        text = f"VARCHAR({length}) CHARACTER SET utf8mb4 COLLATE {collation}"
        return {name: text if kinds[name] == "string" else f"VARBINARY({length})" for name in long}

    def _save(self, rows, table):
        if self._is_of("sqlite"):
            rows = rows.coalesce(1)  # SQLite allows one writer at a time
        rows = rows.selectExpr(*(self._as_key(f) for f in rows.schema.fields))
        rows.write.format("jdbc").options(**self.options).option("dbtable", table).mode("append").save()

    def _as_key(self, field):
        """The expression of a column in which a key that the database would take for another one fails."""
        column = "`" + field.name.replace("`", "``") + "`"
        kind = field.dataType.simpleString() if self._is_key(field.name) else ""
        says = f"the KEY column {field.name} has ".replace("\\", "\\\\").replace("'", "\\'")
        if "string" in kind:
            no_text = "text that is no UTF-8, which is not told apart: write hex(…) or base64(…) of it"
            return f"IF(NOT is_valid_utf8({column}), raise_error('{says}{no_text}'), {column}) AS {column}"
        wrong = self.NO_NAN.get(self.options["url"].split(":")[1])
        if kind in ("double", "float") and wrong:
            return f"IF(isnan({column}), raise_error('{says}{wrong}'), {column}) AS {column}"
        return column

    def _newest(self, rows):
        """The last of the rows with equal keys, since the database accepts only one."""
        if not self.key:
            return rows
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        place = F.row_number().over(Window.partitionBy(*self.key).orderBy(F.desc("_place")))
        placed = rows.withColumn("_place", F.monotonically_increasing_id())
        return placed.withColumn("_place", place).where("_place = 1").drop("_place")

    def _listed(self, names):
        return ", ".join(self.dialect.quoteIdentifier(n) for n in names)

    def _delete(self, staging, connection, changes):
        """Delete the rows that changes say are gone. A row with NULL in its key conflicts with none: it is
        deleted, too, before its new values are added.
        """
        if changes:
            keys, op = self._listed(self.key), self._listed([self.OP])
            gone = f"SELECT {keys} FROM {staging} WHERE {op} = '-D'"
            self._run(connection, f"DELETE FROM {self.table} WHERE ({keys}) IN ({gone})")
        columns = [self._listed([k]) for k in self.key]
        null = " OR ".join(f"s.{c} IS NULL" for c in columns)
        if int(self._run(connection, f"SELECT count(*) FROM {staging} s WHERE {null}")):
            same = " AND ".join(
                f"(s.{c} = {self.table}.{c} OR s.{c} IS NULL AND {self.table}.{c} IS NULL)" for c in columns
            )
            those = f"SELECT 1 FROM {staging} s WHERE ({null}) AND {same}"
            self._run(connection, f"DELETE FROM {self.table} WHERE EXISTS ({those})")

    def _take_over(self, rows, staging, changes=False):
        """The statements that copy the rows of the staging table; with a key, over the rows of that key."""
        listed = self._listed(rows.columns)
        which = f"{self._listed([self.OP])} <> '-D'" if changes else "1 = 1"
        text = f"INSERT INTO {self.table} ({listed}) SELECT {listed} FROM {staging} s WHERE {which}"
        if not self.key:
            return [text]
        others = [self._listed([c]) for c in rows.columns if not self._is_key(c)]
        if self._is_of("mysql"):
            # ON DUPLICATE KEY would also change the row that is equal in another unique column.
            same = " AND ".join(f"t.{c} = s.{c}" for c in map(self._listed, ([k] for k in self.key)))
            update = ", ".join(f"t.{c} = s.{c}" for c in others)
            change = f"UPDATE {self.table} t JOIN {staging} s ON {same} SET {update} WHERE {which}"
            add = f"{text} AND NOT EXISTS (SELECT 1 FROM {self.table} t WHERE {same})"
            return [change, add] if update else [add]
        update = ", ".join(f"{c} = excluded.{c}" for c in others)
        then = f"UPDATE SET {update}" if update else "NOTHING"
        return [f"{text} ON CONFLICT ({self._listed(self.key)}) DO {then}"]
