# SPDX-License-Identifier: MIT
"""The Spark session of the jobs, and files in any file system of Spark: local, HDFS, S3."""

import atexit
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Any

from ..failure import Failure
from ..wheel import missing

HERE = pathlib.Path(__file__).resolve().parent


def submitted() -> bool:
    """Whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")


def session(job: str, master: str | None, settings: dict[str, str]) -> Any:
    """A session in local mode, unless there is a master or spark-submit provides one."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing("the Python package pyspark", "[fleet]", "script/spark") from None
    if not submitted() and not java():
        raise Failure("Spark needs Java, which is not installed. Run: apt-get install default-jre-headless")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same Python, which has numpy
    builder = SparkSession.builder.appName("forktail fleet " + job)
    if master or not submitted():
        builder = builder.master(master or "local[*]")
    own = {
        "spark.sql.legacy.parquet.nanosAsLong": "true",  # times in ns; Spark's timestamps have microseconds
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a run's id may look like a number
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",  # a sum that overflows is an error
        "spark.sql.files.ignoreMissingFiles": "false",
    }
    if not submitted():
        own["spark.ui.showConsoleProgress"] = "false"
        own["spark.ui.enabled"] = "false"
        own["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{HERE / 'log4j2.properties'}"
        if not master:
            own["spark.sql.shuffle.partitions"] = str(2 * len(os.sched_getaffinity(0)))
    for name, value in {**own, **settings}.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # any exception of the JVM: an unreachable master, too little memory
        raise Failure(f"Spark does not start: {first_line(error)}") from None
    ship(spark)
    return spark


def ship(spark: Any) -> None:
    """Sends this package to the workers, which import its functions. They fetch it with their first work."""
    directory = tempfile.mkdtemp(prefix="forktail-fleet-")
    package = HERE.parent
    archive = shutil.make_archive(os.path.join(directory, "forktail"), "zip", package.parent, package.name)
    spark.sparkContext.addPyFile(archive)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)


def first_line(error: Exception) -> str:
    text = str(getattr(error, "java_exception", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def file_system(spark: Any, path: str) -> tuple[Any, Any]:
    """Hadoop's file system of a path, and the path."""
    where = spark._jvm.org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark._jsc.hadoopConfiguration()), where


def read_text(spark: Any, path: str) -> str | None:
    """The file's text; None if it does not exist."""
    fs, where = file_system(spark, path)
    if not fs.exists(where):
        return None
    stream = fs.open(where)
    try:
        return bytes(spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
    finally:
        stream.close()


def write_text(spark: Any, path: str, text: str) -> None:
    fs, where = file_system(spark, path)
    stream = fs.create(where, True)
    stream.write(bytearray(text.encode()))
    stream.close()
