"""USING countdown."""

from streamsql.plugin import OptionSpec, PythonSource


class Countdown(PythonSource):
    name = "countdown"
    help = "numbers down to 1, once"
    uses = ("read",)
    options = (OptionSpec("start", "the first number", "positive integer", default="10"),)
    source_class = "streamsql_countdown.numbers.Numbers"
    not_known = ()
    open_options = False
