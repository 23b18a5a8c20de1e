"""Delta's commits in S3 on the condition that no other process has made the same one: by a log store of ours.

Delta's own store for S3 asks whether a commit is there, and writes it afterwards; of two drivers that do so at once,
one replaces the commit of the other without an error. This one sends the condition with the object (``If-None-Match``),
which S3A does where an option asks for it (HADOOP-19256), and writes nothing once the lease of the lake has lapsed.

It is Java, since Delta calls it, and is compiled by the compiler that Spark has for its own code, so that no jar of
ours must be shipped. Executors, which commit nothing but list folders by it, get it as a jar.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from pipeline.lake.s3 import SCHEMES
from pipeline.streaming.spark.compiled_java import compiled
from pipeline.streaming.spark.session import own_folder

NAME = "io.delta.storage.WirelakeS3LogStore"
_BESIDE = "io.delta.storage.S3SingleDriverLogStore"
"""Whose loader and package the class gets: then each thread of the JVM finds it."""
_LAPSES = "wirelake.lease.lapses "
"""Begin of a property of the JVM: before the root of a lake. Its value is a time of ``System.nanoTime``."""
_STORE = """
package io.delta.storage;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

public class WirelakeS3LogStore extends S3SingleDriverLogStore {
  public WirelakeS3LogStore(Configuration conf) { super(conf); }

  public void write(Path path, CloseableIterator actions, Boolean overwrite, Configuration conf) throws IOException {
    demandLease(path);
    if (overwrite.booleanValue()) {
      super.write(path, actions, overwrite, conf);
      return;
    }
    byte[] content = contentOf(actions);
    FileSystem files = path.getFileSystem(conf);
    try {
      FSDataOutputStream stream = (FSDataOutputStream) files.createFile(path).overwrite(false).recursive()
          .opt("fs.option.create.conditional.overwrite", true).build();
      stream.write(content);
      stream.close();
    } catch (IOException error) {
      byte[] found = read(files, path);
      if (found == null) throw error;
      // What the client of the store sent again may have been there already.
      if (!Arrays.equals(found, content)) throw new java.nio.file.FileAlreadyExistsException(path.toString());
    }
  }

  private static void demandLease(Path path) throws IOException {
    for (Path place = path; place != null; place = place.getParent()) {
      String lapses = System.getProperty("LAPSES" + place);
      if (lapses != null && System.nanoTime() - Long.parseLong(lapses) >= 0)
        throw new IOException("this job no longer holds the lease of " + place + ": nothing is committed");
    }
  }

  private static byte[] contentOf(CloseableIterator actions) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      content.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
      content.write(10);
    }
    return content.toByteArray();
  }

  private static byte[] read(FileSystem files, Path path) throws IOException {
    if (!files.exists(path)) return null;
    InputStream stream = files.open(path);
    try {
      return stream.readAllBytes();
    } finally {
      stream.close();
    }
  }
}
"""
_STORE = _STORE.replace("LAPSES", _LAPSES)
_DEFINER = """
package wirelake;

public class Definer {
  public Class define(Class beside, byte[] code) throws Exception {
    return java.lang.invoke.MethodHandles
        .privateLookupIn(beside, java.lang.invoke.MethodHandles.lookup()).defineClass(code);
  }
}
"""


def commit_on_condition(spark: SparkSession) -> None:
    """Have Delta commit to S3 on that condition, unless the settings name a log store for it.

    Args:
        spark: the session, which has not opened a table there yet.
    """
    conf = spark.sparkContext._jsc.sc().conf()  # what Delta asks, and not that of SQL
    settings = [f"spark.delta.logStore.{scheme}.impl" for scheme in SCHEMES]
    if any(conf.contains(name) for name in (*settings, "spark.delta.logStore.class")):
        return
    define_store(spark._jvm)
    if not spark.sparkContext.master.startswith("local"):
        jar = Path(own_folder(), "wirelake-log-store.jar")
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr(f"{NAME.replace('.', '/')}.class", bytes(_code(spark._jvm)))
        spark.sparkContext._jsc.addJar(str(jar))
    for name in settings:
        conf.set(name, NAME)


def define_store(jvm: Any) -> None:
    """Make the class of the store known to a JVM, once."""
    beside = _beside(jvm)
    loader = beside.getClassLoader()
    try:
        loader.loadClass(NAME)
    except Py4JJavaError:
        definer = compiled(jvm, loader, _DEFINER).getClassLoader().loadClass("wirelake.Definer")
        definer.newInstance().define(beside, _code(jvm))


def _code(jvm: Any) -> Any:
    """The bytes of the class."""
    return compiled(jvm, _beside(jvm).getClassLoader(), _STORE).getBytecodes().get(NAME)


def _beside(jvm: Any) -> Any:
    """Delta's own store, by the loader that knows what `spark.jars` adds."""
    return jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_BESIDE)


def note_lapse(spark: SparkSession, place: str, seconds: float | None) -> None:
    """Have commits to a lake in S3 refused from some time on. A JVM that does not answer makes none.

    Args:
        spark: the session.
        place: URL of the lake.
        seconds: from now until its lease lapses; None: this process needs none any more.
    """
    with suppress(Py4JError):
        system, name = spark._jvm.java.lang.System, f"{_LAPSES}{spark._jvm.org.apache.hadoop.fs.Path(place)}"
        if seconds is None:
            system.clearProperty(name)
        else:
            system.setProperty(name, str(system.nanoTime() + int(seconds * 1e9)))
