"""python -m heddle export RESULTS TARGET: a results database as DuckDB file or as folder of Parquet files."""

import argparse
import sys

from heddle.export import export


def main():
    parser = argparse.ArgumentParser(prog="python -m heddle", description="Tools around heddle's results databases.")
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="write every table and view as DuckDB file or Parquet files")
    exporting.add_argument("results", help="a results database")
    exporting.add_argument("target", help="NAME.duckdb, or a folder for one Parquet file a table")
    arguments = parser.parse_args()
    try:
        for name, rows in export(arguments.results, arguments.target).items():
            print(f"{name}\t{rows}")
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"heddle export: {error}")


if __name__ == "__main__":
    main()
