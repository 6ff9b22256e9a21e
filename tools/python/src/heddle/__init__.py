"""Results of the heddle GPU simulator as pandas DataFrames.

    import heddle
    db = heddle.run(["traces/gemm.sm_80.htrace"], arch="a100_sxm4_80gb", db="results.db")   # or heddle.open("results.db")
    db.launches().sort_values("duration_us")

Columns and units are those of the tables and views of docs/db_schema.md.
"""

from heddle.database import Database, open  # noqa: A004 (like gzip.open)
from heddle.export import export
from heddle.program import HeddleError, find_program, run, sweep

__version__ = "0.1.0"  # of the program whose databases it reads

__all__ = ["Database", "HeddleError", "__version__", "export", "find_program", "open", "run", "sweep"]
