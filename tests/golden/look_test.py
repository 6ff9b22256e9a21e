"""`heddle timeline` and `heddle top` on real launches: the trace is read back with Perfetto's own messages. Exit 77 (ctest
counts it as skipped) where PyPI's perfetto is missing. The environment names the program (HEDDLE) and the sources
(HEDDLE_SOURCES)."""

import collections
import importlib.machinery
import importlib.util
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if importlib.util.find_spec("perfetto") is None:
    print(f"skipped: {sys.executable} has no perfetto (tools/requirements.txt)")
    sys.exit(77)

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent  # noqa: E402

SOURCES = Path(os.environ.get("HEDDLE_SOURCES", Path(__file__).resolve().parents[2]))
HEDDLE = os.environ["HEDDLE"]
SOFTMAX = str(SOURCES / "traces/softmax.sm_80.htrace")
SAMPLED = ["smsp_inst_executed", "sm_pipe_tensor_cycles_active", "l1tex_m_read_bytes", "l1tex_m_write_bytes", "lts_t_bytes",
           "dram_read_bytes", "dram_write_bytes"]


def heddle(*words, code=0, env=None):
    done = subprocess.run([HEDDLE, *map(str, words)], capture_output=True, text=True, check=False,
                          env={**os.environ, **(env or {})})
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def run(database, *words, trace=SOFTMAX, rows=300):
    heddle("run", trace, "-d", f"rows={rows}", "-a", "a100_sxm4_80gb", "--db", database, "-q", "--no-table", *words)


class Decoded:
    """A trace as a tree of tracks with their slices and values, decoded strictly."""

    def __init__(self, path):
        trace = Trace()
        trace.ParseFromString(Path(path).read_bytes())
        self.names, self.arguments, self.tracks, self.processes = {}, {}, {}, []
        self.slices = collections.defaultdict(list)  # by track: [begin, end, depth, name, arguments]
        self.values = collections.defaultdict(list)  # by track: (time, value)
        open_slices = collections.defaultdict(list)
        self.last = 0
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            for name in packet.interned_data.event_names:
                self.names[name.iid] = name.name
            for name in packet.interned_data.debug_annotation_names:
                self.arguments[name.iid] = name.name
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert not track.parent_uuid or track.parent_uuid in self.tracks, "parents come first"
                assert track.uuid not in self.tracks
                self.tracks[track.uuid] = track
                if track.HasField("process"):
                    self.processes.append(track)
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            assert packet.timestamp >= self.last, "events are in order of time"
            self.last = packet.timestamp
            assert event.track_uuid in self.tracks
            if event.type == TrackEvent.TYPE_COUNTER:
                self.values[event.track_uuid].append((packet.timestamp, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack = open_slices[event.track_uuid]
                arguments = {self.arguments[a.name_iid]: a.string_value or a.uint_value or a.double_value
                             for a in event.debug_annotations}
                slice_ = [packet.timestamp, None, len(stack), self.names[event.name_iid], arguments]
                stack.append(slice_)
                self.slices[event.track_uuid].append(slice_)
            else:
                assert event.type == TrackEvent.TYPE_SLICE_END
                open_slices[event.track_uuid].pop()[1] = packet.timestamp
        assert not any(open_slices.values()), "every slice ends"

    def path(self, uuid):
        track = self.tracks[uuid]
        return (self.path(track.parent_uuid) if track.parent_uuid else []) + [track.name or track.process.process_name]

    def named(self, name):
        return next(uuid for uuid, track in self.tracks.items() if track.name == name)


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.db = cls.folder / "results.db"
        run(cls.db, "--timeline", "--threads", 1)
        heddle("timeline", cls.db, "-o", cls.folder / "run.pftrace")
        cls.trace = Decoded(cls.folder / "run.pftrace")
        cls.raw = sqlite3.connect(cls.db)

    @classmethod
    def tearDownClass(cls):
        cls.raw.close()
        cls.temporary.cleanup()

    def dump(self, path):
        return heddle("db", "dump", "--canonical", path).stdout

    def test_keeping_it_changes_nothing_and_threads_do_not_matter(self):
        plain, threads = self.folder / "plain.db", self.folder / "threads.db"
        run(plain)
        run(threads, "--timeline", "--threads", 4)
        self.assertEqual(self.dump(self.db), self.dump(threads))
        sections = re.split(r"(?m)^(?=# )", self.dump(self.db))
        self.assertEqual("".join(s for s in sections if not s.startswith(("# cta\n", "# counter_sample\n"))),
                         "".join(s for s in re.split(r"(?m)^(?=# )", self.dump(plain))
                                 if not s.startswith(("# cta\n", "# counter_sample\n"))))
        # A launch that is there without gets its timeline later, the same one, and once.
        run(plain, "--timeline")
        run(plain, "--timeline")
        self.assertEqual(self.dump(plain), self.dump(self.db))
        merged = self.folder / "merged.db"
        heddle("db", "merge", merged, self.db, plain)
        self.assertEqual(self.dump(merged), self.dump(self.db))

    def test_samples_add_up_to_the_counters(self):
        for name in SAMPLED:
            with self.subTest(name):
                samples = self.raw.execute("SELECT SUM(s.value) FROM counter_sample s JOIN stat_def USING (stat_id) "
                                           "WHERE name = ?", (name,)).fetchone()
                self.assertEqual(samples, self.raw.execute("SELECT value FROM v_stat WHERE name = ?", (name,)).fetchone())
        (count,) = self.raw.execute("SELECT COUNT(DISTINCT cycle) FROM counter_sample").fetchone()
        self.assertGreater(count, 10)

    def test_every_cta_is_there_within_its_launch(self):
        launch = self.raw.execute("SELECT start_cycle, end_cycle, grid_x FROM launch").fetchone()
        rows = self.raw.execute("SELECT cta, sm, start_cycle, end_cycle FROM cta ORDER BY cta").fetchall()
        self.assertEqual([row[0] for row in rows], list(range(launch[2])))
        for _, sm, start, end in rows:
            self.assertTrue(0 <= sm < 108 and launch[0] < start < end <= launch[1])

    def test_tracks(self):
        paths = {"/".join(self.trace.path(uuid)) for uuid in self.trace.tracks}
        process = "a100_sxm4_80gb: softmax.sm_80.htrace (run 1)"
        self.assertEqual([p.process.process_name for p in self.trace.processes], [process])
        for name in ["stream 0", "DRAM", "L2", "L2 to SMs", "SMs to L2", "tensor pipes", "instructions", "SMs",
                     "SMs/SM 0/slot 0", "SMs/SM 107/slot 0"]:
            self.assertIn(f"{process}/{name}", paths)
        for uuid in self.trace.slices:
            self.assertRegex("/".join(self.trace.path(uuid)[1:]), r"^(stream 0|SMs/SM \d+/slot \d+)$")

    def test_a_launch_holds_its_phases(self):
        slices = self.trace.slices[self.trace.named("stream 0")]
        self.assertEqual([(s[2], s[3]) for s in slices], [(0, "softmax"), (1, "launch overhead"), (1, "CTAs"), (1, "drain")])
        launch, *phases = slices
        self.assertEqual([phases[0][0], phases[1][0], phases[2][0], phases[2][1]],
                         [launch[0], phases[0][1], phases[1][1], launch[1]], "one after the other, no gap")
        row = self.raw.execute("SELECT launch_id, end_cycle - start_cycle, duration_ps FROM launch").fetchone()
        self.assertEqual((launch[4]["launch_id"], launch[4]["cycles"], launch[4]["grid"]), (row[0], row[1], "300x1x1"))
        self.assertAlmostEqual(launch[4]["duration_us"], row[2] / 1e6)
        self.assertAlmostEqual(launch[1] - launch[0], row[1] / 1.41, delta=1)

    def test_ctas_lie_on_their_sms(self):
        expected = collections.Counter((sm, cta) for sm, cta in self.raw.execute("SELECT sm, cta FROM cta"))
        found = collections.Counter()
        for uuid, slices in self.trace.slices.items():
            path = self.trace.path(uuid)
            if path[1] != "SMs":
                continue
            end = 0
            for slice_ in slices:
                self.assertEqual((slice_[2], slice_[3]), (0, "softmax"))
                self.assertGreaterEqual(slice_[0], end, "those of a slot do not overlap")
                end = slice_[1]
                found[(int(path[2][3:]), slice_[4].get("cta", 0))] += 1
        self.assertEqual(found, expected)

    def test_counters_are_rates_of_what_was_counted(self):
        """The mean of each counter over time is the launch's count over its cycles."""
        values = {n: v for n, v in self.raw.execute("SELECT name, value FROM v_stat")}
        cycles = values["sm_cycles_elapsed"]
        dram = 100 * (values["dram_read_bytes"] + values["dram_write_bytes"]) / cycles / (2039e9 / 1.41e9)
        means = {"DRAM": dram, "instructions": values["smsp_inst_executed"] / cycles / 108, "tensor pipes": 0}
        for name, expected in means.items():
            changes = self.trace.values[self.trace.named(name)]
            mean = sum(v * (b - a) for (a, v), (b, _) in zip(changes, changes[1:])) / (cycles / 1.41)
            self.assertAlmostEqual(mean, expected, delta=max(0.01 * expected, 1e-3), msg=name)
        for uuid, changes in self.trace.values.items():
            # What is asked for in one window counts there, so that bursts pass the peak.
            self.assertTrue(all(0 <= value <= 1000 for _, value in changes), self.trace.path(uuid))
            self.assertEqual(changes[-1][1], 0, "nothing moves after the last launch")

    def test_size_has_a_cap(self):
        small = self.folder / "small.pftrace"
        sizes = []
        for most in (0.02, 0.01, 0.003):
            done = heddle("timeline", self.db, "-o", small, "--max-mb", most)
            trace = Decoded(small)
            tracks = sum(1 for t in trace.tracks.values()) * 40  # and their descriptors
            self.assertLess(small.stat().st_size - tracks, most * 1e6, done.stderr)
            sizes.append(sum(len(slices) for uuid, slices in trace.slices.items() if trace.path(uuid)[1] == "SMs"))
            self.assertIn(f"{sizes[-1]} of their 300 CTAs", done.stderr)
        self.assertTrue(300 > sizes[0] > sizes[1] > sizes[2], sizes)
        self.assertIn("samples is kept", done.stderr)
        self.assertIn("do not fit", heddle("timeline", self.db, "-o", small, "--max-mb", 0.0001, code=2).stderr)

    def test_without_samples_launches_alone_are_shown(self):
        plain = self.folder / "without.db"
        run(plain, rows=4)
        run(plain, rows=5)
        done = heddle("timeline", plain, "-o", self.folder / "without.pftrace")
        self.assertIn("`heddle run --timeline`", done.stderr)
        trace = Decoded(self.folder / "without.pftrace")
        self.assertEqual(len(trace.processes), 2, "runs have a time each")
        self.assertEqual([[(s[2], s[3]) for s in slices] for slices in trace.slices.values()], [[(0, "softmax")]] * 2)
        self.assertFalse(trace.values)

    def test_selections_and_errors(self):
        out = self.folder / "x.pftrace"
        self.assertIn("no launch is selected", heddle("timeline", self.db, "-o", out, "-k", "gemm", code=2).stderr)
        self.assertIn("takes one database", heddle("timeline", "-o", out, code=2).stderr)
        self.assertIn("cannot be written", heddle("timeline", self.db, "-o", self.folder / "no/x.pftrace", code=2).stderr)
        self.assertIn("--output", heddle("timeline", self.db, code=2).stderr)
        self.assertFalse(out.exists())


class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.db = Path(cls.temporary.name) / "results.db"
        run(cls.db, rows=40)
        run(cls.db, rows=400)
        heddle("run", SOURCES / "traces/rms_norm.sm_80.htrace", "-a", "a40", "--db", cls.db, "-q", "--no-table",
               "--allow-foreign")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_rows_are_kernels_by_time(self):
        document = json.loads(heddle("top", self.db, "--json").stdout)
        with sqlite3.connect(self.db) as raw:
            whole = dict(raw.execute("SELECT machine, SUM(duration_us) FROM v_launch GROUP BY machine"))
        raw.close()
        self.assertEqual({m["machine"]: round(m["duration_us"], 6) for m in document["machines"]},
                         {name: round(us, 6) for name, us in whole.items()})
        for machine in document["machines"]:
            times = [k["duration_us"] for k in machine["kernels"]]
            self.assertEqual(times, sorted(times, reverse=True))
            self.assertAlmostEqual(sum(k["time_percent"] for k in machine["kernels"]), 100)
            for kernel in machine["kernels"]:
                self.assertTrue(0 < kernel["bound_busy_percent"] <= kernel["lower_bound_percent"] <= 100, kernel)
                self.assertEqual(len(kernel["stalls"]), 3)
                self.assertNotIn("selected", [s["stall"] for s in kernel["stalls"]])

    def test_limit_says_what_is_left_out(self):
        text = heddle("top", self.db, "-n", 1, "-a", "a100_sxm4_80gb").stdout
        self.assertEqual(len([line for line in text.splitlines() if " softmax" in line]), 1)
        self.assertIn("... 1 more (--limit 0 shows all)", text)

    def test_lines_fit_into_the_width(self):
        for columns in (66, 80, 100, 160):
            lines = heddle("top", self.db, env={"COLUMNS": str(columns)}).stdout.splitlines()
            self.assertLessEqual(max(map(len, lines)), columns, "\n".join(lines))
        self.assertNotIn("waits for", heddle("top", self.db, env={"COLUMNS": "66"}).stdout)
        self.assertIn("waits for", lines[1])

    def on_a_terminal(self, env):
        main, side = pty.openpty()
        process = subprocess.Popen([HEDDLE, "top", self.db], stdout=side, env={**os.environ, **env})
        os.close(side)
        text = b""
        while True:
            try:
                block = os.read(main, 65536)
            except OSError:
                break
            if not block:
                break
            text += block
        os.close(main)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def test_colours_are_for_terminals(self):
        self.assertNotIn("\x1b", heddle("top", self.db).stdout)
        self.assertIn("\x1b[1m", self.on_a_terminal({"NO_COLOR": ""}))
        self.assertNotIn("\x1b", self.on_a_terminal({"NO_COLOR": "1"}))


class Desk(unittest.TestCase):
    """Commands that read take time in proportion to the database, whatever the machine. tools/bench_desk has the seconds of
    100,000 launches."""

    def test_reading_scales_with_the_database(self):
        loader = importlib.machinery.SourceFileLoader("bench_desk", str(SOURCES / "tools/bench_desk"))
        desk = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_desk", loader))
        loader.exec_module(desk)
        with tempfile.TemporaryDirectory() as folder:
            seconds = []
            for launches in (800, 4000):
                path = Path(folder) / f"{launches}.db"
                desk.make(HEDDLE, path, launches)
                seconds.append([least for _, least in desk.measure(HEDDLE, path, repetitions=2)])
            for command, small, large in zip(desk.COMMANDS, *seconds):
                self.assertLess(large, 0.15 + 8 * small, f"{command}: 5 times the launches took {large / small:.0f} times as long")


class Future(unittest.TestCase):
    def test_every_machine_of_the_what_if_library_runs_kernels(self):
        machines = sorted((SOURCES / "arch_configs/future").glob("*.textproto"))
        self.assertGreaterEqual(len(machines), 7)
        with tempfile.TemporaryDirectory() as folder:
            for machine in machines:
                with self.subTest(machine.stem):
                    text = machine.read_text()
                    reasons = text[:text.index("base:")]
                    self.assertGreater(len(reasons.split()), 100, "says why one would ask, what changes, what to look at")
                    heddle("arch", "check", machine)
                    base = re.search(r'(?m)^base: "(\w+)"', text).group(1)
                    self.assertNotEqual(heddle("arch", "diff", base, machine.stem).stdout, "")
                    version = "sm_80" if base.startswith("a100") else "sm_90"
                    database = Path(folder) / f"{machine.stem}.db"
                    heddle("run", SOURCES / f"traces/rms_norm.{version}.htrace", "-d", "rows=64", "-a", machine.stem, "-a", base,
                           "--db", database, "-q", "--no-table")
                    with sqlite3.connect(database) as raw:
                        rows = raw.execute("SELECT machine, cycles, warp_instructions FROM v_launch ORDER BY launch_id").fetchall()
                    raw.close()
                    self.assertEqual([row[0] for row in rows], [machine.stem, base])
                    self.assertEqual(rows[0][2], rows[1][2], "the same work")
                    self.assertLess(rows[0][1], 1.1 * rows[1][1])


if __name__ == "__main__":
    unittest.main()
