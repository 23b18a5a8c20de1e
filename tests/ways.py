"""Which calls does a capture take from bytes to landing? ``python -m tests.ways CHECKOUT CAPTURE``.

Runs ``wirelake capture read`` of that checkout, and prints who calls whom across files, in the order in which it first
happens, from the first packet on; then how often the way enters the class ``Agent``, and where it continues from there.
Needs Python 3.11, which knows the class of a function that runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

Call = tuple[str, str, str, str]
"""File and function that calls, file and function that is called."""
_TRACE = """
import json, os, sys
from pipeline.cli import main
root, out = os.getcwd() + os.sep, sys.argv.pop(1)
calls = {}
def inside(code):
    return code.co_filename.startswith((root + "decoder", root + "pipeline"))
def note(frame, event, argument):
    caller = frame.f_back
    if event != "call" or caller is None or not inside(frame.f_code) or not inside(caller.f_code):
        return
    if caller.f_code.co_filename != frame.f_code.co_filename:
        one, other = caller.f_code, frame.f_code
        calls[one.co_filename[len(root):], one.co_qualname, other.co_filename[len(root):], other.co_qualname] = None
sys.setprofile(note)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
with open(out, "w") as file:
    json.dump(list(calls), file)
"""


def calls_of(checkout: Path, capture: Path) -> list[Call]:
    """The calls between files of the program, each once."""
    with tempfile.TemporaryDirectory(prefix="wirelake-ways-") as folder:
        out = Path(folder) / "calls.json"
        arguments = [str(out), "capture", "read", str(capture), "--landing", str(Path(folder) / "landing")]
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _TRACE, *arguments]
        subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=True)
        return [tuple(call) for call in json.loads(out.read_text())]


def report(calls: list[Call]) -> Iterator[str]:
    first = next(n for n, call in enumerate(calls) if call[3] == "Agent.take")
    for caller_file, caller, file, function in calls[first:]:
        yield f"{caller_file} {caller} -> {file} {function}"
    entering = {function: caller for _, caller, _, function in calls if function.startswith("Agent.")}
    leaving = {f"{file} {function}" for _, caller, file, function in calls if caller.startswith("Agent.")}
    yield f"into Agent: {len(entering)} methods: " + ", ".join(f"{one} <- {by}" for one, by in sorted(entering.items()))
    yield f"out of Agent: {len(leaving)} functions in {len({place.split()[0] for place in leaving})} files"


if __name__ == "__main__":
    print("\n".join(report(calls_of(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))))
