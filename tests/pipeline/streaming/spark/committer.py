"""Commits to a Delta log in S3 by a JVM without Spark: ``python -m …committer ENDPOINT FOLDER STORE NUMBER…``.

``STORE`` is ``ours`` or the name of another log store. It says ``ready``, waits for a line, and prints the numbers of
the commits that it made, and the classes of what refused the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from pipeline.streaming.spark.conditional_commits import NAME, define_store
from tests.brokers.maven import broker_libs
from tests.paths import ROOT
from tests.pipeline.capture.s3 import ACCESS_KEY, SECRET_KEY

DELTAS_OWN = "io.delta.storage.S3SingleDriverLogStore"
_ACTIONS = """
package tests;

public class Actions implements io.delta.storage.CloseableIterator {
  private String action;
  public Actions() {}
  public Actions of(String action) { this.action = action; return this; }
  public boolean hasNext() { return action != null; }
  public Object next() { String found = action; action = null; return found; }
  public void close() {}
}
"""


def start(endpoint: str, folder: str, store: str, *numbers: int) -> subprocess.Popen[str]:
    """Such a process."""
    command = [sys.executable, "-m", "tests.pipeline.streaming.spark.committer", endpoint, folder, store]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *map(str, numbers)], text=True, cwd=ROOT, **pipes)  # type: ignore[call-overload]


def made_of(gateway: Any, store: str, conf: Any) -> Any:
    """A log store, by the name of its class."""
    jvm = gateway.jvm
    kind = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(store)
    types, values = gateway.new_array(jvm.java.lang.Class, 1), gateway.new_array(jvm.java.lang.Object, 1)
    types[0], values[0] = conf.getClass(), conf
    return kind.getConstructor(types).newInstance(values)


def actions_of(jvm: Any, store: Any, action: str) -> Any:
    """What a log store writes as a commit."""
    if (kind := _kinds.get(id(jvm))) is None:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(store.getClass().getClassLoader())
        compiler.cook(_ACTIONS)
        kind = _kinds[id(jvm)] = compiler.getClassLoader().loadClass("tests.Actions")
    return kind.newInstance().of(action)


_kinds: dict[int, Any] = {}


def main(endpoint: str, folder: str, store: str, *numbers: str) -> None:
    """See the module."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    libs = broker_libs("hadoop_aws") / "*"
    port, token = launch_gateway(
        classpath=f"{jars}{os.pathsep}{libs}", die_on_exit=True, enable_auth=True, javaopts=["-Xmx400m"]
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    jvm = gateway.jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    s3a = {
        "impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", "endpoint": endpoint, "endpoint.region": "eu-west-1",
        "path.style.access": "true", "access.key": ACCESS_KEY, "secret.key": SECRET_KEY,
        "connection.ssl.enabled": "false",
    }  # fmt: skip
    for name, value in s3a.items():
        conf.set(f"fs.s3a.{name}", value)
    define_store(jvm)
    log = made_of(gateway, NAME if store == "ours" else store, conf)
    print("ready", flush=True)
    sys.stdin.readline()
    made, refused = [], Counter[str]()
    for number in map(int, numbers):
        path = jvm.org.apache.hadoop.fs.Path(f"{folder}/_delta_log/{number:020}.json")
        try:
            log.write(path, actions_of(jvm, log, f"{os.getpid()} {number}"), False, conf)
            made.append(number)
        except Py4JJavaError as error:
            refused[error.java_exception.getClass().getName()] += 1
    print(json.dumps({"made": made, "refused": dict(refused)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
