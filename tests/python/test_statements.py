"""Statements: parameters, laziness, types, tables of Python's objects, and the docstrings."""

import datetime
import decimal
import doctest
import enum
import math
import re
import warnings
from pathlib import Path

import pytest

import datafusion_tadoc as tadoc


# What the examples of these methods need.
NEEDED = {
    "Result.arrow": ["pyarrow"], "Result.pl": ["polars"], "Result.df": ["pandas", "pyarrow"],
    "Result.fetch_record_batch": ["pyarrow"], "Connection.sql": ["pyarrow"], "arrow_rows": ["pyarrow"],
    "Variables": ["pyarrow"],
}  # fmt: skip
MODULES = [
    tadoc, tadoc._connection, tadoc._errors, tadoc._functions, tadoc._living, tadoc._notices, tadoc._output,
    tadoc._progress, tadoc._result, tadoc._sql_text, tadoc._variables,
]  # fmt: skip
# Names of the package without the module that has them.
MODULE = re.compile(r"datafusion_tadoc\.(_\w+\.)?")


def docstrings():
    finder = doctest.DocTestFinder()
    names = {"datetime": datetime, "tadoc": tadoc, "connect": tadoc.connect, "ingest": tadoc.ingest}
    found = [test for module in MODULES for test in finder.find(module, extraglobs=names)]
    return [test for test in found if test.examples]


@pytest.mark.parametrize("test", docstrings(), ids=lambda test: MODULE.sub("", test.name))
def test_docstrings_are_true(test):
    for package in NEEDED.get(MODULE.sub("", test.name), []):
        pytest.importorskip(package)
    # The examples read and write files, in a folder of their own.
    assert doctest.DocTestRunner().run(test).failed == 0


def test_everything_public_has_an_example():
    examples = {MODULE.sub("", test.name) for test in docstrings()}
    public = set()
    for name in set(tadoc.__all__) - {"__version__", "Error", "Interrupted", "Location"}:
        kind = getattr(tadoc, name)
        public.add(name)
        if isinstance(kind, type):
            # A method under another name has the example of its own.
            methods = {member: method for member, method in vars(kind).items() if not member.startswith("_")}
            public |= {f"{name}.{getattr(method, '__name__', member)}" for member, method in methods.items()}
    public |= {f"Functions.{name}" for name in vars(tadoc._functions.Functions) if not name.startswith("_")}
    assert public <= examples, public - examples


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -7, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1,
     1.5, -0.25, 1e300, math.inf, "it's \\ $1", "", "naïve\n", b"\x00\xff", b"",
     datetime.date(2026, 11, 24), datetime.datetime(2026, 11, 24, 20, 2, 38, 123456), datetime.time(1, 2, 3),
     decimal.Decimal("-12.340"), [1, 2, 3], ["a", None], decimal.Decimal("0.0000001"),
     decimal.Decimal("1e10"), decimal.Decimal("-1.5E-20"), decimal.Decimal("0E-9")],
)  # fmt: skip
def test_parameters_come_back(value, con):
    for sql, params in [("SELECT $1", [value]), ("SELECT ?", [value]), ("SELECT :v", {"v": value})]:
        assert con.sql(sql, params).rows() == [(value,)]


def nested(depth):
    """1 in `depth` lists."""
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_lists_in_lists_are_bounded(con):
    assert con.sql("SELECT $1", [nested(16)]).rows() == [(nested(16),)]
    endless = []
    endless.append(endless)
    for value in [nested(17), nested(100_000), endless, (endless, endless)]:
        for params in [[value], {"1": value}]:
            with pytest.raises(tadoc.Error, match="more than 16 lists in each other"):
                con.sql("SELECT $1", params)


# Python and pytest do not write an integer of 5,000 digits.
@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**40, 10**5_000], ids=int.bit_length)
def test_integers_that_do_not_fit_are_an_error(value, con):
    for parameter in [value, [1, value]]:
        with pytest.raises(tadoc.Error, match="does not fit into 64 bits; pass a Decimal or a text") as error:
            con.sql("SELECT $1", [parameter])
        assert value > 10**4_000 or str(value) in str(error.value)
    if abs(value) < 10**38:
        assert con.sql("SELECT $1", [decimal.Decimal(value)]).rows() == [(value,)]


@pytest.mark.parametrize("text", ["1e38", "1e-39", "1e999999999", "-1e-999999999", "NaN", "Infinity"])
def test_decimals_that_do_not_fit_are_an_error(text, con):
    with pytest.raises(tadoc.Error, match=re.escape(str(decimal.Decimal(text)))):
        con.sql("SELECT $1", [decimal.Decimal(text)]).rows()


def test_enumerations_are_their_numbers(con):
    class Level(enum.IntEnum):
        HIGH = 7

    assert con.sql("SELECT $1", [Level.HIGH]).rows() == [(7,)]


def test_extract_goes_to_the_end(plays, con):
    texts = [row[4] for row in con.documents(plays)]
    assert [con.extract(plays, doc_id).rows()[0][0] for doc_id in range(len(texts))] == texts
    hamlet = next(doc_id for doc_id, text in enumerate(texts) if text.startswith("To be"))
    assert con.extract(plays, hamlet, 7).rows() == [(texts[hamlet][7:],)]
    assert con.extract(plays, hamlet, byte_len=5).rows() == [("To be",)]
    assert con.extract(plays, hamlet, 7, 2).rows() == [("or",)]
    corpus = tadoc.open("living", create=True, connection=con)
    corpus.append([("a.txt", "to be")])
    corpus.edit(0, text=" or not")
    assert con.extract("living", 0).rows() == [("to be or not",)]
    assert con.extract("living", 0, version=2).rows() == [("to be",)]
    with pytest.raises(tadoc.Error, match="doc_id"):
        con.extract(plays, 99).rows()


def test_moments_with_zones_come_back(con):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2026, 11, 24, 20, 2, 38, tzinfo=zone)
    assert con.sql("SELECT $1", [moment]).rows() == [(moment,)]


def test_zones_are_those_of_python(con):
    zoneinfo = pytest.importorskip("zoneinfo")
    moment = "arrow_cast(TIMESTAMP '2026-07-01 10:00:00', 'Timestamp(Second, Some(\"{}\"))')"
    (berlin, paris), = con.sql(f"SELECT {moment.format('Europe/Berlin')}, {moment.format('+02:00')}").rows()
    assert berlin.tzinfo == zoneinfo.ZoneInfo("Europe/Berlin")
    assert paris.tzinfo == datetime.timezone(datetime.timedelta(hours=2))
    assert berlin == paris and (berlin + datetime.timedelta(days=180)).utcoffset() == datetime.timedelta(hours=1)
    twice = ["2026-10-25 00:30:00", "2026-10-25 01:30:00"]
    hours = con.sql("SELECT arrow_cast(arrow_cast($1, 'Timestamp(Nanosecond, Some(\"UTC\"))'), "
                    "'Timestamp(Nanosecond, Some(\"Europe/Berlin\"))') AS a", twice[:1]).rows()  # fmt: skip
    assert hours[0][0].astimezone(datetime.timezone.utc).hour == 0


@pytest.mark.parametrize("year", [1, 1677, 1678, 2261, 2262, 9999])
def test_moments_of_all_years_come_back(year, con):
    moment = datetime.datetime(year, 4, 12, 1, 2, 3, 456789)
    assert con.sql("SELECT $1", [moment]).rows() == [(moment,)]
    moment = moment.replace(tzinfo=datetime.timezone.utc)
    assert con.sql("SELECT $1", [moment]).rows() == [(moment,)]


@pytest.mark.parametrize("microseconds", [0, 1, -1, 3 * 86_400_000_000 + 5, -86_400_000_001, 10**15])
def test_spans_of_time_are_intervals(microseconds, con):
    span = datetime.timedelta(microseconds=microseconds)
    start = datetime.datetime(2026, 11, 24, 20, 2, 38, 123456)
    assert con.sql("SELECT $1 + $2", [start, span]).rows() == [(start + span,)]
    for other in [span, datetime.timedelta(days=1), datetime.timedelta(days=-1), datetime.timedelta(days=4)]:
        query = "SELECT ($1 + $2) - $1 > $3, ($1 + $2) - $1 = $3"
        assert con.sql(query, [start, span, other]).rows() == [(span > other, span == other)]


def test_scalars_of_numpy_are_their_values(con):
    numpy = pytest.importorskip("numpy")
    values = [
        numpy.int8(-4), numpy.uint64(2**64 - 1), numpy.float32(0.5), numpy.float64(0.1), numpy.bool_(True),
        numpy.str_("it's"), numpy.bytes_(b"\x00\x01"),
    ]  # fmt: skip
    for value in values:
        assert con.sql("SELECT $1", [value]).rows() == [(value.item(),)]
        assert con.sql("SELECT $1", [[value]]).rows() == [([value.item()],)]
    moment = datetime.datetime(2026, 11, 24, 20, 2, 38)
    for unit in ["s", "us", "ns"]:
        assert con.sql("SELECT $1", [numpy.datetime64(moment, unit)]).rows() == [(moment,)]
    span = numpy.timedelta64(36, "h")
    assert con.sql("SELECT $1 - $2", [moment, span]).rows() == [(moment - span.item(),)]
    assert con.sql("SELECT $1 AS a, $2 AS b", [numpy.datetime64("NaT"), numpy.timedelta64("NaT")]).rows() == [(None, None)]
    for value in [numpy.datetime64(1, "ns"), numpy.datetime64(20_000, "Y"), numpy.timedelta64(1, "M"), numpy.arange(2)]:
        with pytest.raises(TypeError, match="a parameter is None"):
            con.sql("SELECT $1", [value])


def test_statements_are_prepared(plays, con):
    con.sql("PREPARE sum(INT, INT) AS SELECT $1 + $2; PREPARE found AS SELECT * FROM search('plays.tadoc', $1)")
    assert con.sql("EXECUTE sum(1, 2)").rows() == [(3,)]
    expected = con.search(plays, "king").rows()
    assert expected
    for word in [["king"], None]:
        found = con.sql("EXECUTE found($1)", word) if word else con.sql("EXECUTE found('king')")
        assert found.rows() == expected
    with pytest.raises(tadoc.Error, match="no parameter"):
        con.sql("PREPARE other AS SELECT $1", [1])
    con.sql("DEALLOCATE sum; DEALLOCATE found")
    for call in ["EXECUTE sum(1, 2)", "EXECUTE found('king')"]:
        with pytest.raises(tadoc.Error, match="does not exist"):
            con.sql(call)


def test_connections_close(plays):
    with tadoc.connect() as con:
        words = con.word_count(plays)
        living = tadoc.open("of_a_closed_one", create=True, connection=con)
    assert words.rows()
    for call in [lambda: con.sql("SELECT 1"), lambda: con.word_count(plays), lambda: living.documents()]:
        with pytest.raises(tadoc.Error, match="the connection is closed"):
            call()
    con.close()


def test_parameters_are_arguments_of_functions(plays, con):
    expected = con.sql("SELECT * FROM kwic('plays.tadoc', 'king', width => 1)").rows()
    assert expected
    kwic = "SELECT * FROM kwic($corpus, $query, width => $width)"
    assert con.sql(kwic, corpus=Path(plays), query="king", width=1).rows() == expected
    assert con.kwic(plays, "king", width=1).rows() == expected
    assert con.sql("EXPLAIN SELECT * FROM word_count(?)", [plays]).rows()
    con.sql("COPY (SELECT * FROM word_count($1)) TO 'words.csv'", [plays])
    assert con.sql("SELECT count(*) FROM 'words.csv'").rows() > [(10,)]


def test_parameters_cannot_change_a_statement(plays, con):
    evil = "king'); DROP TABLE t; --"
    assert con.search(plays, "'" + evil + "'").columns[0] == "doc_id"
    assert con.sql("SELECT $1", [evil]).rows() == [(evil,)]


@pytest.mark.parametrize(
    ("params", "message"),
    [([], "no value for the parameter $1; given: none"), ([1, 2], "the statement has no parameter $2; it uses: $1"),
     ({"a": 1}, "no value for the parameter $1; given: $a")],
)  # fmt: skip
def test_parameters_must_fit(params, message, con):
    with pytest.raises(tadoc.Error) as error:
        con.sql("SELECT $1", params)
    assert str(error.value) == message
    with pytest.raises(TypeError):
        con.sql("SELECT $1", [object()])


def test_types(con):
    values = [
        "CAST(1 AS TINYINT)", "CAST(1 AS BIGINT UNSIGNED)", "CAST(0.5 AS REAL)", "[[1], NULL]",
        "named_struct('a', 1, 'b', 'x')", "map(['k'], [2])", "arrow_cast('d', 'Dictionary(Int32, Utf8)')",
        "arrow_cast('large', 'LargeUtf8')", "arrow_cast(1500, 'Duration(Millisecond)')",
        "TIMESTAMP '2026-11-24 10:00:00'", "arrow_cast(X'00ff', 'LargeBinary')", "CAST(1.25 AS DECIMAL(10, 3))", "NULL",
    ]  # fmt: skip
    sql = "SELECT " + ", ".join(f"{value} AS c{at}" for at, value in enumerate(values))
    assert con.sql(sql).rows() == [(
        1, 1, 0.5, [[1], None], {"a": 1, "b": "x"}, [("k", 2)], "d", "large", datetime.timedelta(seconds=1.5),
        datetime.datetime(2026, 11, 24, 10), b"\x00\xff", decimal.Decimal("1.250"), None,
    )]  # fmt: skip
    with pytest.raises((OverflowError, ValueError)):
        con.sql("SELECT arrow_cast(arrow_cast(9000000000, 'Int64') * 100, 'Timestamp(Second, None)')").rows()


def test_queries_are_lazy_and_run_again(plays, con):
    counted = con.sql("SELECT count(*) FROM documents('later.tadoc')")
    with pytest.raises(tadoc.Error, match="later.tadoc"):
        counted.rows()
    tadoc.ingest([("a", "x")], "later.tadoc")
    assert counted.rows() == [(1,)]
    tadoc.ingest([("a", "x"), ("b", "y")], "later.tadoc", overwrite=True)
    assert counted.rows() == [(2,)]


def test_other_statements_run_once_and_at_once(con, folder):
    con.sql("CREATE TABLE t (n INT); INSERT INTO t VALUES (1)")
    inserted = con.sql("INSERT INTO t VALUES (2), (3)")
    assert inserted.rows() == inserted.rows() == [(2,)]
    assert con.sql("SELECT count(*) FROM t").rows() == [(3,)]
    con.sql("COPY t TO 'out.csv'")
    assert (folder / "out.csv").exists()
    con.sql("SET tadoc.max_hits = '1'")
    with pytest.raises(tadoc.Error, match="there is no statement"):
        con.sql(" ; ")


def test_shown_rows(con, capsys):
    con.sql("SELECT * FROM generate_series(1, 100)").show(limit=3)
    assert "the first 3 rows" in capsys.readouterr().out
    con.sql("SELECT * FROM generate_series(1, 3)").show(limit=3)
    assert "first" not in capsys.readouterr().out
    shown = con.sql("SELECT '<script>' AS \"<b>\", 1 AS n")._repr_html_()
    assert "<script>" not in shown and "<b>" not in shown and "&lt;script&gt;" in shown


def test_shown_cells_are_bounded(con, capsys):
    texts = con.sql("SELECT value AS n, repeat('to be\n', 100000) AS text FROM generate_series(1, 100)")
    texts.show(limit=5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + 5 + 1 + 1
    assert max(map(len, lines)) < 160 and " kB |" in lines[3]
    shown = texts._repr_html_()
    assert len(shown) < 40 * 250 and shown.count("<tr>") == 41 and "the first 40 rows" in shown
    one = con.sql("SELECT repeat('x', 500) AS text")
    one.show(max_width=None)
    assert "x" * 500 in capsys.readouterr().out
    one.show(max_width=7)
    assert "x" * 7 + " … 493 bytes" in capsys.readouterr().out
    with pytest.raises(ValueError, match="max_width"):
        one.show(max_width=0)
    gathered = con.sql("CREATE TABLE made AS SELECT 1 AS n")
    assert gathered._repr_html_().count("<td>") <= 1


def test_connections_have_settings_and_limits():
    con = tadoc.connect(threads=1, device="cpu", memory_limit="4GiB")
    assert con.sql("SHOW tadoc.device").rows() == [("tadoc.device", "cpu")]
    for bad in [{"device": "tpu"}, {"memory_limit": "many"}, {"settings": {"tadoc.no_such": 1}}]:
        with pytest.raises(tadoc.Error):
            tadoc.connect(**bad)
    little = tadoc.connect(memory_limit=2**20)
    with pytest.raises(tadoc.Error, match="memory"):
        little.sql("SELECT count(DISTINCT value) FROM generate_series(1, 10000000)").rows()


def test_results_are_tables(con):
    con.register("t", con.sql("SELECT 1 AS n"))
    con.register("t", con.sql("SELECT 2 AS n"))
    assert con.sql("SELECT n FROM t").rows() == [(2,)]
    assert con.unregister("t") and not con.unregister("t")
    with pytest.raises(TypeError, match="expected an Arrow object"):
        con.register("t", [1, 2])


@pytest.mark.parametrize(("sql", "expected"), [
    ("interval '1 day'", datetime.timedelta(days=1)),
    ("interval '-90 minutes'", datetime.timedelta(minutes=-90)),
    ("interval '2 days 3 hours 4.000005 seconds'", datetime.timedelta(days=2, hours=3, seconds=4, microseconds=5)),
    ("interval '1 month'", (1, 0, 0)),
    ("interval '1 year 2 days'", (12, 2, 0)),
    ("interval '1 nanosecond'", (0, 0, 1)),
    ("CAST(NULL AS interval)", None),
    ("[interval '1 day', NULL]", [datetime.timedelta(days=1), None]),
    ("{a: interval '1 hour'}", {"a": datetime.timedelta(hours=1)}),
    ("MAP {'a': interval '1 month'}", [("a", (1, 0, 0))]),
    ("TIMESTAMP '2026-01-02T00:00:00' - TIMESTAMP '2026-01-01T00:00:00'", datetime.timedelta(days=1)),
    ("arrow_cast(90, 'Duration(Second)')", datetime.timedelta(seconds=90)),
    ("arrow_cast('1 month', 'Interval(YearMonth)')", (1, 0, 0)),
    ("arrow_cast('1 day 1 hour', 'Interval(DayTime)')", datetime.timedelta(days=1, hours=1)),
    ("arrow_cast('a', 'Dictionary(Int32, Utf8)')", "a"),
    ("arrow_cast(X'00ff', 'FixedSizeBinary(2)')", b"\x00\xff"),
    ("CAST(12345678901234567890123.45 AS DECIMAL(30, 2))", None),
    ("TIME '23:59:59.5'", datetime.time(23, 59, 59, 500_000)),
    ("DATE '9999-12-31'", datetime.date(9999, 12, 31)),
])  # fmt: skip
def test_values_of_time_are_those_of_python(sql, expected, con):
    value = con.sql(f"SELECT {sql} AS v").rows()[0][0]
    if sql.startswith("CAST(123"):
        assert isinstance(value, decimal.Decimal)
    else:
        assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize("sql", ["DATE '9999-12-31' + 1", "arrow_cast(400000000, 'Date32')", "arrow_cast(-800000, 'Date32')",
    "arrow_cast(9223372036854775807, 'Timestamp(Second, None)')", "arrow_cast(400000000000000, 'Timestamp(Millisecond, None)')"])  # fmt: skip
def test_dates_outside_of_python_are_errors_of_one_kind(sql, con):
    with pytest.raises(OverflowError, match="use arrow"):
        con.sql(f"SELECT {sql} AS v").rows()


def test_notices_are_warnings(plays, con):
    with pytest.warns(tadoc.Notice, match="asks for the word `or`, too; write OR for the operator") as told:
        con.search(plays, "king or horse")
    assert told[0].filename == __file__
    with pytest.warns(tadoc.Notice):
        con.sql("SELECT matches('a', 'a and b')")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.search(plays, "king OR horse").rows()
        con.search(plays, '"to be or not"').rows()
