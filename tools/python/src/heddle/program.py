"""Calls the heddle program."""

import os
import shlex
import shutil
import subprocess

from heddle.database import Database


class HeddleError(RuntimeError):
    """The program ended with an error: `exit_code` (1 internal, 2 usage, 3 configuration, 4 trace, 5 did not finish,
    6 gate failed, 75 interrupted) and `message`, what it said."""

    def __init__(self, command, exit_code, message):
        super().__init__(f"{shlex.join(command)}\nended with {exit_code}:\n{message}")
        self.command = command
        self.exit_code = exit_code
        self.message = message


def find_program():
    """The program: what the environment's HEDDLE names, else the first `heddle` on PATH."""
    program = os.environ.get("HEDDLE") or shutil.which("heddle")
    if program is None:
        raise FileNotFoundError("no program heddle on PATH; build it (tools/quickstart) and let HEDDLE name it: "
                                "HEDDLE=build/tools/heddle/heddle")
    return program


def run(traces, arch, db, *, set=None, define=None, arguments=(), program=None):  # noqa: A002 (the option's name)
    """`heddle run`: replays traces on machines, and opens the database that the results are in.

    traces: a path or several. arch: a name of `heddle arch list`, a file, or several. set: {"sm.count": 144} changes
    the machine, define: {"m": 256} the traces' shapes. arguments: further words of the command line, as in
    ["--cache", "warm"]. Launches that the database holds are not simulated again.
    """
    words = ["run", *_list(traces), *_options("--arch", _list(arch)), *_options("--set", _pairs(set)),
             *_options("--define", _pairs(define)), "--db", os.fspath(db), "--quiet", "--no-table", *arguments]
    _call(words, program)
    return Database(db)


def sweep(traces, arch, db, axes, *, set=None, define=None, arguments=(), program=None):  # noqa: A002
    """`heddle sweep`: every trace on every point of the axes, and opens the database that the results are in.

    axes: {"sm.count": [132, 144], "l2.size_bytes": "[50Mi:200Mi:x2]"}: values of a field of the machine, or a range as
    the command line writes it. The rest as in run().
    """
    texts = [f"{path}={values if isinstance(values, str) else ','.join(str(value) for value in values)}"
             for path, values in axes.items()]
    words = ["sweep", *_options("--trace", _list(traces)), *_options("--arch", _list(arch)), *_options("--axis", texts),
             *_options("--set", _pairs(set)), *_options("--define", _pairs(define)), "--db", os.fspath(db), *arguments]
    _call(words, program)
    return Database(db)


def _list(value):
    return [os.fspath(value)] if isinstance(value, (str, os.PathLike)) else [os.fspath(item) for item in value]


def _pairs(mapping):
    return [f"{name}={value}" for name, value in (mapping or {}).items()]


def _options(name, values):
    return [word for value in values for word in (name, value)]


def _call(words, program):
    command = [os.fspath(program or find_program()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HeddleError(command, done.returncode, done.stderr.strip())
