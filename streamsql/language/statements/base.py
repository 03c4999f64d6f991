"""The base class of statements, and the parts that statements share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypedDict, Unpack

from streamsql.errors import Source, Span, SyntaxFault, did_you_mean
from streamsql.language.durations import duration_of
from streamsql.language.edits import edited
from streamsql.language.grammar import Node, text_of
from streamsql.language.origin import Origin
from streamsql.language.tokens import on_one_line, tokenize


class About(TypedDict, total=False):
    """What the head of a class says of its statements; see Statement."""

    topic: str
    needs_spark: bool
    changes_workspace: bool
    read_only: bool
    of_pipeline: bool
    defines: str
    refers: str
    not_on_connect: str
    changes_prompt: bool


@dataclass(frozen=True)
class Statement:
    """Base class of all statements. text: the statement without `;`, with `${name}` replaced by values; span:
    its position in the source; origin: maps positions in the text to the source.

    read_as: the console's own statement that the statement of another console was read as.

    The class has the name of its grammar rule. Its head says: topic: its HELP topic; needs_spark: whether it
    requires Spark; changes_workspace: whether it changes the stored workspace; read_only: whether a read-only
    console accepts it; of_pipeline: whether a test executes it when it loads a pipeline; defines, refers: the
    kind of entry that its `name` defines, or that must exist for it (unless `if_exists`): stream, sink,
    live_table, function, query or change; changes_prompt: whether the prompt is another one after it;
    not_on_connect: what a Spark Connect server lacks for it, a key of LACKS of the feature `connect`.
    """

    topic: ClassVar[str]
    needs_spark: ClassVar[bool] = False
    changes_workspace: ClassVar[bool] = False
    read_only: ClassVar[bool]
    of_pipeline: ClassVar[bool]
    defines: ClassVar[str] = ""
    refers: ClassVar[str] = ""
    not_on_connect: ClassVar[str] = ""
    changes_prompt: ClassVar[bool] = False

    text: str = field(default="", compare=False)
    span: Span = field(default=Span(0, 0), compare=False)
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    read_as: str = field(default="", compare=False)

    def __init_subclass__(cls, **about: Unpack[About]) -> None:
        """about: the attributes of the class that differ from those of its base."""
        for name, value in about.items():
            setattr(cls, name, value)
        if "read_only" not in vars(cls):
            cls.read_only = not cls.changes_workspace
        if "of_pipeline" not in vars(cls):
            cls.of_pipeline = cls.changes_workspace

    @classmethod
    def own_fields(cls, node: Node, source: Source) -> dict[str, Any] | Statement:
        """The fields that are not read by their names alone (see binder), or a statement of another kind that
        the node is. Raises SyntaxFault or RuleFault.
        """
        return {}


@dataclass(frozen=True, kw_only=True)
class StatementWithBody(Statement):
    """A statement about another one. The parser sets body: the statement that is the rest of its text."""

    body: Statement | None = None


@dataclass(frozen=True, kw_only=True)
class StatementWithBlock(Statement):
    """A statement of others. The parser sets body: the statements between BEGIN and END of the rest."""

    body: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Name:
    """A name, option or value with its position in the text."""

    value: str
    span: Span = field(default=Span(0, 0), compare=False)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Fragment:
    """A piece of Spark SQL, kept as the analyst wrote it. origin: see Statement; spliced: whether it consists
    of parts of the source, to which origin maps it.
    """

    text: str
    span: Span = field(default=Span(0, 0), compare=False)
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    spliced: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Column:
    """A declared column; type is Spark's type text; declared: the type as it was declared, where it is read
    as another one; kinds: the names of the types in a declared one, in capitals.
    """

    name: str
    type: str
    nullable: bool = True
    comment: str = ""
    span: Span = field(default=Span(0, 0), compare=False)
    declared: str = field(default="", compare=False)
    kinds: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Watermark:
    """column: the event-time column; delay: the watermark delay for withWatermark ("10 minutes").

    computed: the expression of the column, if it is not a column of the source.
    """

    column: Name
    delay: str
    computed: Fragment | None = None


@dataclass(frozen=True)
class Option:
    key: Name
    value: Name


@dataclass(frozen=True)
class Trigger:
    """kind: available_now, once, every, continuous or real_time; interval: a duration text."""

    kind: str
    interval: str = ""
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def ends(self) -> bool:
        """Whether the query ends by itself, when it has read what there is."""
        return self.kind in ("available_now", "once")

    def sql(self) -> str:
        words = {"available_now": "AVAILABLE NOW", "once": "ONCE", "every": "EVERY",
                 "continuous": "CONTINUOUS EVERY", "real_time": "REAL TIME EVERY"}  # fmt: skip
        return words[self.kind] + (f" '{self.interval}'" if self.interval else "")


@dataclass(frozen=True)
class Restart:
    """RESTART: a failed query is restarted at most `times` times in a row; every: the first delay."""

    times: int
    every: str

    def sql(self) -> str:
        return f"{self.times} TIMES EVERY '{self.every}'"


@dataclass(frozen=True, kw_only=True)
class QueryClauses:
    """The clauses of a statement that starts a query. begins: now, beginning or accept,
    "" for the existing checkpoint; late: of ON LATE INTO."""

    query_name: Name | None = None
    output_mode: Name | None = None
    trigger: Trigger | None = None
    checkpoint: Name | None = None
    restart: Restart | None = None
    begins: str = ""
    late: Name | None = None
    retain: int | None = None

    @property
    def has_clauses(self) -> bool:
        """Whether the statement has a clause that only streaming queries support."""
        return any(getattr(self, clause.name) for clause in fields(QueryClauses))


def name_of(node: Node | None) -> Name:
    assert node is not None
    return Name(node.value, node.span)


LONGEST_NAME = 255
"""The longest name in bytes that file systems and Spark's catalogs support."""


def new_name_of(node: Node | None) -> Name:
    """The name of a new entry. Raises SyntaxFault for a name that is not allowed; see check_new_name."""
    name = name_of(node)
    check_new_name(name.value, name.span)
    return name


def check_new_name(name: str, span: Span) -> None:
    """Raise SyntaxFault at span for a name that is empty, too long, not valid Unicode, or contains ${, which
    starts a variable.
    """
    if not name:
        raise SyntaxFault(
            "a name cannot be empty", hint="write at least one letter", span=span, code="BAD_NAME"
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise SyntaxFault(
            "this name is not valid Unicode", hint="use other letters", span=span, code="BAD_NAME"
        ) from None
    if size > LONGEST_NAME:
        raise SyntaxFault(
            f"the name is {size} bytes long; at most {LONGEST_NAME} are allowed",
            hint="use a shorter name",
            span=span,
            code="NAME_TOO_LONG",
        )
    if "${" in name:
        raise SyntaxFault(
            "a name cannot contain ${",
            hint="${…} is a variable; use another name",
            span=span,
            code="BAD_NAME",
        )


def fragment_of(source: Source, node: Node) -> Fragment:
    return Fragment(text_of(source, node), node.span)


SIMPLE_TYPES = frozenset(
    """BOOLEAN BYTE TINYINT SHORT SMALLINT INT INTEGER LONG BIGINT FLOAT REAL DOUBLE DATE TIME
    TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ STRING CHAR CHARACTER VARCHAR BINARY DECIMAL DEC
    NUMERIC VOID VARIANT GEOMETRY GEOGRAPHY""".split()
)


OTHER_TYPES = {
    "TEXT": "STRING", "BYTES": "BINARY", "BYTEA": "BINARY", "BLOB": "BINARY", "TIMESTAMPTZ": "TIMESTAMP",
    "DATETIME": "TIMESTAMP", "JSONB": "STRING", "JSON": "STRING", "UUID": "STRING", "BOOL": "BOOLEAN",
    "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
    "UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINTEGER": "BIGINT", "UBIGINT": "DECIMAL(20)",
    "HUGEINT": "DECIMAL(38)", "SERIAL": "INT", "BIGSERIAL": "BIGINT", "ROW": "STRUCT<name: TYPE>",
}  # fmt: skip
"""Types of other consoles, and what they are here."""


def _other_type(name: str) -> str:
    own = OTHER_TYPES.get(name.upper())
    return f"{name} of other systems is {own} here" if own else ""


def check_type(node: Node) -> None:
    """Raise SyntaxFault for an unknown type name (Spark guide, "Data Types")."""
    for part in node.walk():
        if part.name == "TypeName" and part.value.upper() not in SIMPLE_TYPES:
            types = SIMPLE_TYPES | {"ARRAY", "MAP", "STRUCT"}
            raise SyntaxFault(
                f"there is no type {part.value}",
                hint=_other_type(part.value)
                or did_you_mean(part.value, types)
                or "types are BIGINT, DOUBLE, STRING, TIMESTAMP, …",
                span=part.span,
                code="UNKNOWN_TYPE",
            )


def one_line(source: Source, node: Node) -> str:
    """A node's text without comments and line breaks; quoted text is not changed."""
    text = text_of(source, node)
    return text if text.isidentifier() else on_one_line(tokenize(text))  # tokenizing most types would be slow


_NESTED = {"ArrayType": "ARRAY", "MapType": "MAP", "StructType": "STRUCT", "IntervalType": "INTERVAL"}


def _kinds(node: Node) -> Iterator[str]:
    """The names of the types in a type, from the outermost on."""
    for part in node.walk():
        if part.name in _NESTED or part.name == "TypeName":
            yield _NESTED.get(part.name) or part.value.upper()


_WITH_LENGTH = frozenset(("CHAR", "CHARACTER", "VARCHAR"))


def _without_lengths(source: Source, kind: Node) -> str:
    """A type with STRING in place of CHAR(n) and VARCHAR(n), which Spark does not read from a source
    (UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING); "" for a type without these.
    """
    start = kind.span.start
    edits = [
        (part.span.start - start, part.span.end - start, "STRING")
        for part in kind.walk()
        if part.text("TypeName").upper() in _WITH_LENGTH
    ]
    return on_one_line(tokenize(edited(text_of(source, kind), edits).text)) if edits else ""


def columns_of(source: Source, node: Node | None) -> tuple[Column, ...]:
    """The columns of a ColumnDefs node. Raises SyntaxFault for an unknown type or a duplicate name."""
    columns: list[Column] = []
    names: set[str] = set()
    for part in node.all("ColumnDef") if node else []:
        defined = part.get("ColumnDefName")
        kind = part.get("Type")
        assert defined and kind
        check_type(kind)
        name = defined.text("NewName")
        check_new_name(name, defined.span)
        if name.casefold() in names:
            raise SyntaxFault(f"column {name} is declared twice", span=defined.span, code="DUPLICATE_NAME")
        names.add(name.casefold())
        comment, declared = part.get("Comment"), one_line(source, kind)
        read = _without_lengths(source, kind)
        columns.append(
            Column(
                name,
                read or declared,
                not part.has("NotNull"),
                comment.text("String") if comment else "",
                defined.span,
                declared if read else "",
                tuple(_kinds(kind)),
            )
        )
    return tuple(columns)


def watermark_of(source: Source, node: Node | None) -> Watermark | None:
    """A Watermark or InWatermark node."""
    if node is None:
        return None
    delay_node = node.get("Delay")
    assert delay_node
    duration = delay_node.get("Duration")
    assert duration
    delay = duration_of(duration)
    computed = node.get("ComputedColumn")
    if computed:
        expression = computed.get("Expression")
        assert expression
        return Watermark(name_of(computed.get("Alias")), delay, fragment_of(source, expression))
    return Watermark(name_of(node.get("ColumnName")), delay)


MOST = 2**31 - 1
"""The largest number that Spark accepts for rows, micro-batches and similar counts."""


def count_of(number: Node, rule: str, hint: str = "", *, least: int = 1) -> int:
    """An integer from `least` to MOST. Raises SyntaxFault with the rule for anything else."""
    text = number.value
    if not (text.isascii() and text.isdigit()):
        raise SyntaxFault(f"{rule}, not {text}", hint=hint, span=number.span, code="BAD_NUMBER")
    if len(text.lstrip("0")) > 10 or int(text.lstrip("0") or "0") > MOST:
        raise SyntaxFault(f"{rule}, at most {MOST}", hint=hint, span=number.span, code="BAD_NUMBER")
    if int(text.lstrip("0") or "0") < least:
        raise SyntaxFault(f"{rule}, not {text}", hint=hint, span=number.span, code="BAD_NUMBER")
    return int(text.lstrip("0") or "0")


def clause(node: Node, rule: str) -> Node | None:
    """The clause with that name in a node, or None. Raises SyntaxFault if it is written twice."""
    wrapped = [part.parts[0] for part in node.all("InsertClause")]
    clauses = [part for part in (*node.parts, *wrapped) if part.name == rule]
    if len(clauses) > 1:
        raise SyntaxFault("this clause is written twice", span=clauses[1].span, code="DUPLICATE_CLAUSE")
    return clauses[0] if clauses else None
