"""A results database, read only."""

import pathlib
import sqlite3

import pandas as pd

APPLICATION_ID = 0x4845444C  # "HEDL"
SCHEMA_VERSION = 7  # the newest that this package knows; a test holds it to the program's


def open(path):
    """Opens a results database that `heddle run` wrote. ValueError where it is none, or one of a newer heddle."""
    return Database(path)


class Database:
    """Tables and views of a results database as DataFrames. A context manager; also closed when it is collected."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        self.connection = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            (application_id,) = self.connection.execute("PRAGMA application_id").fetchone()
            (self.schema_version,) = self.connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            self.close()
            raise ValueError(f"{path}: {error}") from None
        if application_id != APPLICATION_ID:
            self.close()
            raise ValueError(f"{path}: is not a heddle results database")
        if self.schema_version > SCHEMA_VERSION:
            self.close()
            raise ValueError(f"{path}: has schema version {self.schema_version}, this package knows up to "
                             f"{SCHEMA_VERSION}; install the package of the heddle that wrote it")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        (launches,) = self.connection.execute("SELECT COUNT(*) FROM launch").fetchone()
        return f"heddle.Database({str(self.path)!r}, {launches} launches)"

    def close(self):
        self.connection.close()

    def sql(self, query, parameters=()):
        """Any query. Parameters stand for '?' or ':name' in it."""
        return pd.read_sql_query(query, self.connection, params=parameters)

    def runs(self):
        """The manifest: one row an invocation of the program, with the number of launches that it added."""
        return self.sql("SELECT r.*, (SELECT COUNT(*) FROM launch l WHERE l.run_id = r.run_id) AS launches FROM run r "
                        "ORDER BY run_id")

    def machines(self):
        """One row a machine description, with what it could do at most; `text` is the resolved description."""
        return self.sql("SELECT * FROM config ORDER BY config_id")

    def launches(self):
        """One row a launch: machine, kernel, shape, how it was run, cycles, time, IPC, tensor and DRAM utilisation."""
        return self.sql(
            "SELECT v.*, i.sm_mhz, i.ipc_gpu, r.tensor_ops_per_second, r.tensor_percent, r.tensor_ops_per_dram_byte, "
            "l.stream, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, l.shared_bytes_per_cta, l.mode, "
            "l.execution, l.cache_policy, l.dependence, l.start_cycle, l.end_cycle, l.config_id, l.kernel_id, l.key "
            "FROM v_launch v JOIN v_ipc i USING (launch_id) JOIN v_roofline r USING (launch_id) "
            "JOIN launch l USING (launch_id) ORDER BY launch_id")

    def kernels(self):
        """One row a kernel and machine: launches, time, its share of the machine's time, and means weighted by cycles."""
        frame = self.sql(
            "SELECT c.name AS machine, k.name AS kernel, k.kernel_id, k.sm_version, k.registers_per_thread, "
            "k.instruction_count, COUNT(*) AS launches, SUM(l.duration_ps) / 1e6 AS duration_us, "
            "SUM(l.end_cycle - l.start_cycle) AS cycles, SUM(i.value) AS warp_instructions, "
            "CAST(SUM(i.value) AS REAL) / MAX(SUM(l.end_cycle - l.start_cycle), 1) / c.sm_count AS ipc_sm "
            "FROM launch l JOIN config c USING (config_id) JOIN kernel k USING (kernel_id) "
            "JOIN v_stat i ON i.launch_id = l.launch_id AND i.name = 'smsp_inst_executed' "
            "GROUP BY l.config_id, l.kernel_id ORDER BY SUM(l.duration_ps) DESC, k.name")
        whole = frame.groupby("machine")["duration_us"].transform("sum")
        frame.insert(frame.columns.get_loc("duration_us") + 1, "time_percent", 100 * frame["duration_us"] / whole)
        return frame

    def counters(self, launch=None):
        """One row a launch, one column a counter. counter_definitions() has units and texts."""
        where, parameters = _of_launch(launch)
        frame = self.sql(f"SELECT launch_id, name, value FROM v_stat {where}", parameters)
        return frame.pivot(index="launch_id", columns="name", values="value").rename_axis(columns=None)

    def counter_definitions(self):
        return self.sql("SELECT name, unit, text FROM stat_def ORDER BY stat_id").set_index("name")

    def stalls(self, launch=None, wide=False):
        """Issue slots by cause. One row a launch and cause; wide: a row a launch, a column a cause, in percent."""
        where, parameters = _of_launch(launch)
        if not wide:
            return self.sql(f"SELECT launch_id, kernel, stall, slots, percent FROM v_stall {where} "
                            "ORDER BY launch_id, slots DESC, stall", parameters)
        frame = self.sql(f"SELECT launch_id, d.name AS stall, slots FROM stall JOIN stall_def d USING (stall_id) {where}",
                         parameters)
        slots = frame.pivot(index="launch_id", columns="stall", values="slots").rename_axis(columns=None)
        percent = slots.div(slots.sum(axis=1).where(lambda total: total > 0), axis=0) * 100
        return percent[slots.sum().sort_values(ascending=False).index]

    def pcs(self, launch, wide=True):
        """Issues and waits of each SASS instruction of a launch. wide: a row an instruction, a column a cause."""
        frame = self.sql(
            "SELECT i.pc, i.text, d.name AS stall, COALESCE(p.slots, 0) AS slots FROM launch l "
            "JOIN instruction i USING (kernel_id) LEFT JOIN pc_stat p ON p.launch_id = l.launch_id AND p.pc = i.pc "
            "LEFT JOIN stall_def d USING (stall_id) WHERE l.launch_id = ? ORDER BY i.pc", (int(launch),))
        if not wide:
            return frame.dropna(subset="stall").reset_index(drop=True)
        text = frame.drop_duplicates("pc").set_index("pc")["text"]
        slots = frame.dropna(subset="stall").pivot(index="pc", columns="stall", values="slots")
        slots = slots.reindex(text.index).fillna(0).astype("int64").rename_axis(columns=None)
        slots.insert(0, "text", text)
        return slots

    def barrier_waits(self, launch=None):
        """Waits for mbarriers and cluster barriers: which instruction waited, and which one let it go on."""
        where, parameters = _of_launch(launch)
        return self.sql(f"SELECT * FROM barrier_wait {where} ORDER BY launch_id, cycles DESC", parameters)

    def ctas(self, launch=None):
        """Where CTAs ran, and when: of launches that were run with --timeline."""
        where, parameters = _of_launch(launch)
        return self.sql(f"SELECT * FROM cta {where} ORDER BY launch_id, start_cycle, sm, cta", parameters)

    def samples(self, launch):
        """How counters of a launch grew, a row a sample: what was counted until `cycle` since the one before. As ctas()."""
        frame = self.sql("SELECT cycle, name, value FROM counter_sample JOIN stat_def USING (stat_id) WHERE launch_id = ?",
                         (int(launch),))
        return frame.pivot(index="cycle", columns="name", values="value").rename_axis(columns=None)

    def measurements(self):
        """What was measured on real GPUs: one row a metric."""
        return self.sql("SELECT * FROM hardware_run JOIN hardware_metric USING (hardware_run_id) "
                        "ORDER BY hardware_run_id, name")

    def comparisons(self):
        """Simulated beside measured, a row a launch and metric that both have: v_error, with the machine's name."""
        return self.sql("SELECT c.name AS machine, e.* FROM v_error e JOIN launch l USING (launch_id) "
                        "JOIN config c USING (config_id) ORDER BY e.launch_id, e.hardware_run_id, e.metric")


def _of_launch(launch):
    return ("", ()) if launch is None else ("WHERE launch_id = ?", (int(launch),))
