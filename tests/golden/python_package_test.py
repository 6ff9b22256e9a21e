"""The Python package: its frames say what the database says, exports keep every row, the wheel is whole, and the notebook
of docs/ runs. Exit 77 (ctest counts it as skipped) where the packages of tools/requirements.txt are missing.

The environment names the program (HEDDLE) and the sources (HEDDLE_SOURCES).
"""

import importlib.util
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

SOURCES = Path(os.environ.get("HEDDLE_SOURCES", Path(__file__).resolve().parents[2]))
NEEDED = ["pandas", "pyarrow", "duckdb", "flit_core", "nbclient", "nbformat", "ipykernel", "matplotlib"]
missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: {sys.executable} has no {', '.join(missing)} (tools/requirements.txt)")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCES / "tools/python/src"))

import duckdb  # noqa: E402
import heddle  # noqa: E402
import pyarrow.parquet  # noqa: E402


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name) / "results.db"
        softmax = SOURCES / "traces/softmax.sm_80.htrace"
        heddle.run(softmax, ["a100_sxm4_80gb", "a40"], cls.path, define={"rows": 16}).close()
        cls.db = heddle.run([softmax], "a100_sxm4_80gb", cls.path, define={"rows": 8}, set={"sm.count": 54},
                            arguments=["--cache", "flush", "--timeline"])
        cls.raw = sqlite3.connect(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.raw.close()
        cls.db.close()
        cls.folder.cleanup()

    def value(self, query):
        return self.raw.execute(query).fetchone()[0]

    def test_launches(self):
        frame = self.db.launches()
        self.assertEqual(list(frame["launch_id"]), [1, 2, 3])
        self.assertEqual(list(frame["machine"]), ["a100_sxm4_80gb", "a40", "a100_sxm4_80gb"])
        self.assertEqual(list(frame["cache_policy"]), ["cold", "cold", "flush"])
        self.assertEqual(list(frame["cycles"]), [r[0] for r in self.raw.execute(
            "SELECT end_cycle - start_cycle FROM launch ORDER BY launch_id")])
        self.assertEqual(list(frame["grid_x"]), [16, 16, 8])
        self.assertTrue(frame.columns.is_unique)

    def test_runs_are_the_manifest(self):
        runs = self.db.runs()
        self.assertEqual(list(runs["launches"]), [2, 1])
        self.assertIn(" --set sm.count=54 --define rows=8 ", runs["command"][1])
        self.assertFalse(runs["finished_at"].isna().any())
        self.assertEqual(list(runs["heddle_version"].unique()), [heddle.__version__], "one version for both")

    def test_machines(self):
        machines = self.db.machines()
        self.assertEqual(list(machines["sm_count"]), [108, 84, 54])

    def test_kernels_share_the_time_of_their_machine(self):
        kernels = self.db.kernels()
        self.assertEqual(len(kernels), 3, "a machine with other numbers is another machine")
        self.assertEqual(kernels["launches"].sum(), 3)
        self.assertAlmostEqual(kernels.loc[kernels["machine"] == "a100_sxm4_80gb", "time_percent"].sum(), 100)
        self.assertAlmostEqual(kernels["duration_us"].sum(), self.value("SELECT SUM(duration_ps) FROM launch") / 1e6)
        self.assertTrue(kernels["duration_us"].is_monotonic_decreasing)

    def test_counters_are_a_column_each_with_a_definition(self):
        counters = self.db.counters()
        self.assertEqual(counters.shape, (3, len(self.db.counter_definitions())))
        self.assertEqual(counters["smsp_inst_executed"][2], self.value(
            "SELECT value FROM v_stat WHERE launch_id = 2 AND name = 'smsp_inst_executed'"))
        self.assertEqual(list(self.db.counters(2).index), [2])

    def test_stalls_sum_to_the_issue_slots(self):
        long, wide = self.db.stalls(), self.db.stalls(wide=True)
        slots = self.db.counters()["smsp_issue_slots"]
        self.assertEqual(long.groupby("launch_id")["slots"].sum().to_dict(), slots.to_dict())
        for total in wide.sum(axis=1):
            self.assertAlmostEqual(total, 100)
        self.assertAlmostEqual(wide.loc[1, "long_scoreboard"], long.query(
            "launch_id == 1 and stall == 'long_scoreboard'")["percent"].iloc[0])

    def test_pcs_have_every_instruction_once(self):
        wide, long = self.db.pcs(1), self.db.pcs(1, wide=False)
        self.assertEqual(len(wide), self.value("SELECT COUNT(*) FROM instruction"))
        self.assertEqual(wide["selected"].sum(), self.db.counters()["smsp_inst_executed"][1])
        self.assertEqual(wide.drop(columns="text").to_numpy().sum(), long["slots"].sum())
        self.assertEqual(wide.index.name, "pc")
        self.assertEqual(len(self.db.pcs(99)), 0)

    def test_timelines(self):
        ctas, samples = self.db.ctas(), self.db.samples(3)
        self.assertEqual(sorted(ctas["cta"]), list(range(8)))
        self.assertEqual(set(ctas["launch_id"]), {3})
        self.assertEqual(samples["dram_read_bytes"].sum(), self.db.counters()["dram_read_bytes"][3])
        self.assertEqual(len(self.db.samples(1)), 0, "was run without")

    def test_comparisons_join_measurements(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "measured.db"
            copy.write_bytes(self.path.read_bytes())
            with sqlite3.connect(copy) as raw:
                raw.execute("INSERT INTO hardware_run (hardware_run_id, gpu, kernel_name, source, protocol, launch_key) "
                            "SELECT 1, 'A40', 'softmax', 'test', 'kernel', key FROM launch WHERE launch_id = 2")
                raw.execute("INSERT INTO hardware_metric SELECT 1, 'duration_ps', 'ps', 2.0 * duration_ps FROM launch "
                            "WHERE launch_id = 2")
                raw.execute("INSERT INTO hardware_metric VALUES (1, 'no_counter', 'byte', 7)")
            raw.close()
            with heddle.open(copy) as db:
                rows = db.comparisons()
                self.assertEqual(rows[["machine", "launch_id", "metric", "error_percent"]].to_numpy().tolist(),
                                 [["a40", 2, "duration_ps", -50.0]])
                self.assertEqual(len(db.measurements()), 2)

    def test_sql_takes_parameters(self):
        self.assertEqual(self.db.sql("SELECT launch_id FROM launch WHERE grid_x > ?", (8,))["launch_id"].tolist(), [1, 2])

    def test_the_database_is_not_written(self):
        with self.assertRaisesRegex(Exception, "readonly"):
            self.db.connection.execute("DELETE FROM launch")

    def test_other_files_are_refused(self):
        with self.assertRaises(FileNotFoundError):
            heddle.open(self.path.with_name("none.db"))
        with self.assertRaisesRegex(ValueError, "not a database"):
            heddle.open(__file__)
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "other.db"
            with sqlite3.connect(other) as raw:
                raw.execute("CREATE TABLE t (x)")
            with self.assertRaisesRegex(ValueError, "not a heddle results database"):
                heddle.open(other)
            with sqlite3.connect(other) as raw:
                raw.execute(f"PRAGMA application_id = {heddle.database.APPLICATION_ID}")
                raw.execute("PRAGMA user_version = 9999")
            with self.assertRaisesRegex(ValueError, "schema version 9999"):
                heddle.open(other)
            raw.close()

    def test_the_package_knows_the_newest_schema(self):
        self.assertEqual(self.db.schema_version, heddle.database.SCHEMA_VERSION)

    def test_exports_keep_every_row_and_value(self):
        tables = [r[0] for r in self.raw.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")]
        with tempfile.TemporaryDirectory() as folder:
            file, parquet = Path(folder) / "results.duckdb", Path(folder) / "parquet"
            for target in (file, file, parquet):  # what is there is replaced
                done = subprocess.run([sys.executable, "-m", "heddle", "export", self.path, target], text=True,
                                      capture_output=True, env={**os.environ, "PYTHONPATH": sys.path[0]}, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(p.name for p in parquet.iterdir()), sorted(f"{t}.parquet" for t in tables))
            with duckdb.connect(str(file), read_only=True) as connection:
                for name in tables:
                    expected = sorted(map(repr, self.raw.execute(f"SELECT * FROM {name}")))
                    found = connection.execute(f'SELECT * FROM "{name}"').fetchall()
                    self.assertEqual(sorted(map(repr, found)), expected, name)
                    rows = [tuple(row.values()) for row in pyarrow.parquet.read_table(parquet / f"{name}.parquet").to_pylist()]
                    self.assertEqual(sorted(map(repr, rows)), expected, name)


class Program(unittest.TestCase):
    def test_errors_carry_exit_code_and_message(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(heddle.HeddleError) as caught:
                heddle.run(SOURCES / "traces/softmax.sm_80.htrace", "a100_sxm4_80gb", f"{folder}/r.db", set={"sm.cuont": 1})
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertIn('did you mean "count"', caught.exception.message)

    def test_sweep_hands_over_axes(self):
        """The command line that `heddle sweep` gets, as a program sees it that only writes it down."""
        with tempfile.TemporaryDirectory() as folder:
            program, log = Path(folder) / "program", Path(folder) / "log"
            program.write_text(f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open({str(log)!r}, 'w'))\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            with self.assertRaises(FileNotFoundError):  # the program writes no database
                heddle.sweep(["a.htrace", "b.htrace"], "h100_sxm5", f"{folder}/r.db",
                             {"sm.count": [132, 144], "l2.size_bytes": "[50Mi:200Mi:x2]"}, define={"m": 1}, program=program)
            self.assertEqual(json.loads(log.read_text()), [
                "sweep", "--trace", "a.htrace", "--trace", "b.htrace", "--arch", "h100_sxm5", "--axis", "sm.count=132,144",
                "--axis", "l2.size_bytes=[50Mi:200Mi:x2]", "--define", "m=1", "--db", f"{folder}/r.db"])


class Wheel(unittest.TestCase):
    def test_wheel_has_the_whole_package_and_works_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SOURCES / "tools/build_wheel", folder], capture_output=True, text=True, check=False,
                                  env={**os.environ, "HEDDLE_PYTHON": sys.executable})
            self.assertEqual(done.returncode, 0, done.stderr)
            (wheel,) = Path(folder).glob("heddle-*-py3-none-any.whl")
            self.assertEqual(wheel.name.split("-")[1], heddle.__version__)
            names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("heddle/")}
            sources = {f"heddle/{path.name}" for path in (SOURCES / "tools/python/src/heddle").glob("*.py")}
            self.assertEqual(names, sources)
            done = subprocess.run([sys.executable, "-c", "import heddle; print(heddle.__file__)"], capture_output=True,
                                  text=True, env={**os.environ, "PYTHONPATH": str(wheel)}, cwd=folder, check=False)
            self.assertIn(str(wheel), done.stdout, done.stderr)


class Notebook(unittest.TestCase):
    def test_notebook_runs(self):
        import nbclient
        import nbformat

        with tempfile.TemporaryDirectory() as folder:
            os.environ["TMPDIR"] = os.environ["JUPYTER_RUNTIME_DIR"] = os.environ["IPYTHONDIR"] = folder
            os.environ["PYTHONPATH"] = sys.path[0]
            os.environ["HEDDLE_SOURCES"] = str(SOURCES)
            notebook = nbformat.read(SOURCES / "docs/results.ipynb", as_version=4)
            for cell in notebook.cells:
                self.assertFalse(cell.get("outputs"), "is committed without outputs")
            nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
            images = [o for c in notebook.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
            self.assertEqual(len(images), 1)
            if keep := os.environ.get("HEDDLE_KEEP_NOTEBOOK"):
                nbformat.write(notebook, keep)


if __name__ == "__main__":
    unittest.main()
