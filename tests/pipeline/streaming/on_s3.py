"""Commands of ``wirelake`` on S3, one after the other in one process, whose JVM has Hadoop's connector.

``python -m tests.pipeline.streaming.on_s3`` takes the words of each as a line of JSON. Beside those of ``wirelake`` it
knows ``race FOLDER NUMBER…``, which makes objects of a folder, in this order, and prints the numbers of those that it
made.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import traceback

from tests.brokers.maven import broker_libs
from tests.paths import ROOT
from tests.pipeline.capture.s3 import ACCESS_KEY, SECRET_KEY

_ENDED = "ended with "
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
WAITS_S = 1800.0


def environment() -> dict[str, str]:
    """That of a user who has been given the key, and has added the connector to the settings."""
    conf = {"spark.master": "local[1]", "spark.driver.extraClassPath": str(broker_libs("hadoop_aws") / "*")}
    return {**os.environ, **KEYS, "WIRELAKE_SPARK": json.dumps(conf)}


class Shell:
    """Such a process."""

    def __init__(self) -> None:
        command = [sys.executable, "-u", "-m", "tests.pipeline.streaming.on_s3"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, text=True, cwd=ROOT, env=environment(), **pipes)  # type: ignore[call-overload]
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def begin(self, *words: object) -> None:
        """Begin a command."""
        self._said.clear()
        self.process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self.process.stdin.flush()

    def says(self, text: str) -> str:
        """Wait for a line with this text."""
        while True:
            line = self._lines.get(timeout=WAITS_S)
            assert line is not None, "\n".join(self._said)
            self._said.append(line)
            if text in line:
                return line
            assert not line.startswith(_ENDED), "\n".join(self._said)

    def ends(self) -> tuple[int, str]:
        """Wait for the end of the command: its exit code, and what it printed."""
        while True:
            line = self._lines.get(timeout=WAITS_S)
            assert line is not None, "\n".join(self._said)
            if line.startswith(_ENDED):
                return int(line.removeprefix(_ENDED)), "\n".join(self._said)
            self._said.append(line)

    def run(self, *words: object) -> tuple[int, str]:
        """A command from its begin to its end."""
        self.begin(*words)
        return self.ends()

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


def _run(words: list[str]) -> int:
    from pipeline.cli import main  # noqa: PLC0415 - as the command does

    sys.argv = ["wirelake", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        return 70
    return 0


def _race(folder: str, *numbers: str) -> int:
    from pipeline.config.settings import load_settings  # noqa: PLC0415
    from pipeline.streaming.spark.hadoop_objects import HadoopObjects  # noqa: PLC0415
    from pipeline.streaming.spark.object_stores import connect  # noqa: PLC0415
    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415
    from pipeline.streaming.storage.lake import Lake  # noqa: PLC0415

    spark = build_session("race", extra_conf=load_settings(None).spark)
    connect(spark, folder)
    objects = HadoopObjects(spark, Lake.at(folder).root)
    objects.names()  # connected before the race begins
    print("ready")
    sys.stdin.readline()
    print(json.dumps([int(number) for number in numbers if objects.create(number, str(os.getpid()).encode())]))
    spark.stop()
    return 0


if __name__ == "__main__":
    for _line in iter(sys.stdin.readline, ""):
        _words = json.loads(_line)
        print(f"{_ENDED}{_race(*_words[1:]) if _words[0] == 'race' else _run(_words)}")
