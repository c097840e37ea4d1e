"""`tadoc serve` and the ADBC driver of Flight SQL."""

import contextlib
import decimal
import os
import re
import subprocess
import sys

import pytest

import datafusion_tadoc as tadoc

flight = pytest.importorskip("adbc_driver_flightsql.dbapi")
pytest.importorskip("pyarrow")

TOKEN = "s3cret"


@contextlib.contextmanager
def serving(*arguments, token=None):
    """Serves corpora while the block runs, and gives the address."""
    command = [sys.executable, "-m", "datafusion_tadoc", "serve", "--listen", "127.0.0.1:0", *arguments]
    variables = {**os.environ, **({"TADOC_TOKEN": token} if token else {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as server:
        try:
            line = server.stderr.readline()
            yield re.search(r"grpc://[\d.]+:\d+", line).group()
        finally:
            server.terminate()
            assert server.wait(timeout=30) == 0


def test_rows_are_those_of_the_module(plays, con):
    queries = [
        "SELECT * FROM word_count('plays') ORDER BY count DESC, word",
        "SELECT doc_id, path, text, content FROM documents('plays') ORDER BY doc_id",
        "SELECT * FROM kwic('plays', 'king')",
        "SELECT * FROM inverted_index('plays') ORDER BY word",
    ]
    with serving(plays) as address, flight.connect(address) as served, served.cursor() as cursor:
        for query in queries:
            cursor.execute(query)
            table = cursor.fetch_arrow_table()
            assert [tuple(row.values()) for row in table.to_pylist()] == con.sql(
                query.replace("'plays'", f"'{plays}'")
            ).rows(), query


def test_parameters_and_metadata(plays):
    with serving(plays) as address, flight.connect(address) as served, served.cursor() as cursor:
        for query, count in [("king", 2), ("'horse'", 3), ("nobody", 0)]:
            cursor.execute("SELECT count(*) FROM search('plays', ?)", (query,))
            assert cursor.fetchone() == (count,), query
        cursor.execute("SELECT path FROM plays WHERE doc_id = ? AND bytes > ?", (1, 3))
        assert cursor.fetchall() == [("richard.txt",)]
        objects = served.adbc_get_objects(depth="tables", db_schema_filter="public").read_all().to_pylist()
        tables = [table for catalog in objects for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]]
        assert [table["table_name"] for table in tables] == ["plays"]
        assert "doc_id" in served.adbc_get_table_schema("plays").names
        assert served.adbc_get_info()["vendor_name"] == "tadoc"


def test_dashboards_ask_over_flight_sql_and_http():
    """A range of time and a variable, as Grafana sends them: with ADBC and over HTTP."""
    import datetime
    import json
    import urllib.request

    import pyarrow as pa

    midnight = datetime.datetime(2026, 11, 28, tzinfo=datetime.timezone.utc)
    times = pa.array([midnight + datetime.timedelta(minutes=n) for n in range(600)], pa.timestamp("us", "UTC"))
    texts = [f"{'ERROR' if n % 4 == 0 else 'INFO'} line {n}" for n in range(600)]
    tadoc.ingest(pa.table({"path": ["app.log"] * 600, "text": texts, "ts": times}), "logs.tadoc")
    steps = """SELECT arrow_cast(date_bin(interval '1800 second', ts), 'Timestamp(Nanosecond, None)') AS time, count(*) AS lines
        FROM logs WHERE ts >= {} AND ts < {} AND matches(text, {}) GROUP BY 1 ORDER BY 1"""
    begin, end = "2026-11-28T02:00:00Z", "2026-11-28T04:00:00Z"
    with serving("logs.tadoc") as address:
        with flight.connect(address) as served, served.cursor() as cursor:
            cursor.execute(steps.format("$1", "$2", "$3"), (begin, end, "ERROR"))
            table = cursor.fetch_arrow_table()
            assert [str(field.type) for field in table.schema] == ["timestamp[ns]", "int64"]
            by_adbc = [(str(row["time"])[:19].replace(" ", "T"), row["lines"]) for row in table.to_pylist()]
        values = {"from": begin, "to": end, "query": "ERROR"}
        body = {"sql": steps.format(":from", ":to", ":query"), "format": "objects", "parameters": values}
        url = address.replace("grpc:", "http:") + "/query"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            by_http = [(row["time"], row["lines"]) for row in json.load(response)]
    assert by_adbc == by_http
    assert by_http == [(f"2026-11-28T{at}:00", 8 if at.endswith(":00") else 7) for at in ("02:00", "02:30", "03:00", "03:30")]


def test_parameters_keep_their_type(plays):
    import pyarrow as pa

    berlin = pa.timestamp("ms", "Europe/Berlin")
    columns = [
        pa.array([decimal.Decimal("12345678901234567.89")], pa.decimal128(38, 2)),
        pa.array([decimal.Decimal("-0.001")], pa.decimal256(50, 3)),
        pa.array([decimal.Decimal("1.5")], pa.decimal128(9, 2)).cast(pa.decimal64(9, 2)),
        pa.array([None], pa.decimal128(7, 1)),
        pa.array([0.1], pa.float32()),
        pa.array([1714979289123], berlin),
        pa.array([-62135596800], pa.timestamp("s")),
        pa.array([7], pa.duration("us")),
        pa.array([86_400_000], pa.date64()),
        pa.array([3_661], pa.time32("s")),
        pa.array([3_661_000_001], pa.time64("us")),
        pa.array([None], pa.list_(pa.int64())),
        pa.array([[[1], None, []]], pa.list_(pa.list_(pa.int64()))),
        pa.array([[decimal.Decimal("1.50"), None]], pa.list_(pa.decimal128(20, 2))),
        pa.array(["be"]).dictionary_encode(),
    ]
    with serving(plays) as address, flight.connect(address) as served, served.cursor() as cursor:
        for column in columns:
            cursor.execute("SELECT $1 AS v", pa.table({"v": column}))
            got = cursor.fetch_arrow_table()["v"]
            if pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
            assert got.type == column.type, column.type
            assert got.to_pylist() == column.to_pylist(), column.type
        exact = "SELECT count(*) FROM (VALUES (CAST('12345678901234567.88' AS DECIMAL(38, 2)))) AS t (x) WHERE x = $1"
        cursor.execute(exact, (decimal.Decimal("12345678901234567.89"),))
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT $1 AS v", pa.table({"v": pa.array([{"a": 1, "b": "x"}])}))
        assert cursor.fetchone() == ({"a": 1, "b": "x"},)
        with pytest.raises(Exception, match="which has no form in SQL"):
            cursor.execute("SELECT $1", pa.table({"v": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
            cursor.fetchall()


def test_errors_and_tokens(plays):
    with serving(plays, token=TOKEN) as address:
        with pytest.raises(Exception, match="(?i)token|unauth"), flight.connect(address) as served, served.cursor() as cursor:
            cursor.execute("SELECT 1")
        for options in [
            {"adbc.flight.sql.authorization_header": f"Bearer {TOKEN}"},
            {"username": "anybody", "password": TOKEN},
        ]:
            with flight.connect(address, db_kwargs=options) as served, served.cursor() as cursor:
                cursor.execute("SELECT 1")
                assert cursor.fetchone() == (1,)
                with pytest.raises(Exception, match="only reads"):
                    cursor.execute("DROP TABLE plays")
                with pytest.raises(Exception, match="nobody"):
                    cursor.execute("SELECT * FROM nobody")


def test_large_answers_arrive_whole(folder, con):
    lines = [(f"{n}.txt", f"line {n} says {n % 97} of {n // 97}, and no more than that\n" * 20) for n in range(4_000)]
    tadoc.ingest(lines, "lines.tadoc")
    with serving("lines.tadoc") as address, flight.connect(address) as served, served.cursor() as cursor:
        texts, words = "SELECT doc_id, path, text FROM documents('{}')", "SELECT doc_id, word, count FROM term_vector('{}')"
        for query in [texts, words]:
            cursor.execute(query.format("lines"))
            table = cursor.fetch_arrow_table()
            expected = con.sql(query.format("lines.tadoc")).arrow().cast(table.schema)
            order = [(name, "ascending") for name in table.column_names[:2]]
            assert table.num_rows >= 4_000 and table.nbytes > 1_000_000
            assert table.sort_by(order) == expected.sort_by(order)
