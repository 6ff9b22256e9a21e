"""Results databases in columns: DuckDB, Parquet."""

import os
import pathlib

from heddle.database import Database

ROWS_AT_ONCE = 200_000


def export(results, target):
    """Writes every table and view of a results database, and returns {name: rows}.

    target: NAME.duckdb (or .ddb) becomes one DuckDB file, anything else a folder with a Parquet file for each. What is
    there is replaced once all is written. Needs pyarrow, and duckdb for the former: pip install heddle[export].
    """
    target = pathlib.Path(target)
    with Database(results) as database:
        if target.suffix in (".duckdb", ".ddb"):
            return _to_duckdb(database, target)
        return _to_parquet(database, target)


def _to_parquet(database, folder):
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in _names(database):
        partial = folder / f"{name}.parquet.partial"
        schema, batches = _batches(database, name)
        with pyarrow.parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
            rows[name] = 0
            for batch in batches:
                writer.write_batch(batch)
                rows[name] += batch.num_rows
        os.replace(partial, folder / f"{name}.parquet")
    return rows


def _to_duckdb(database, file):
    import duckdb
    import pyarrow

    partial = file.with_name(file.name + ".partial")
    partial.unlink(missing_ok=True)
    rows = {}
    with duckdb.connect(str(partial)) as connection:
        for name in _names(database):
            schema, batches = _batches(database, name)
            connection.register("arriving", schema.empty_table())
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM arriving')
            rows[name] = 0
            for batch in batches:
                connection.register("arriving", pyarrow.Table.from_batches([batch]))
                connection.execute(f'INSERT INTO "{name}" SELECT * FROM arriving')
                rows[name] += batch.num_rows
            connection.unregister("arriving")
    os.replace(partial, file)
    return rows


def _names(database):
    query = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in database.connection.execute(query)]


def _batches(database, name):
    """The schema of a table or view, and its rows as record batches.

    Tables are STRICT, so that their columns have the declared type. A view's computed columns have none: they take that
    of their values, integers among reals become reals.
    """
    import pyarrow

    declared = {row[1]: row[2].upper() for row in database.connection.execute(f'PRAGMA table_info("{name}")')}
    computed = [column for column, kind in declared.items() if kind not in ("INTEGER", "REAL", "TEXT")]
    if computed:
        kinds = ", ".join(f"COALESCE(MAX(typeof(\"{column}\") = 'text') * 2 + MAX(typeof(\"{column}\") = 'real'), 1)"
                          for column in computed)
        values = database.connection.execute(f'SELECT {kinds} FROM "{name}"').fetchone()
        declared.update(zip(computed, (("INTEGER", "REAL", "TEXT", "TEXT")[value] for value in values)))
    types = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string()}
    schema = pyarrow.schema([(column, types[kind]) for column, kind in declared.items()])

    def rows():
        cursor = database.connection.execute(f'SELECT * FROM "{name}"')
        while block := cursor.fetchmany(ROWS_AT_ONCE):
            arrays = [pyarrow.array(values, type=field.type) for values, field in zip(zip(*block), schema)]
            yield pyarrow.record_batch(arrays, schema=schema)

    return schema, rows()
