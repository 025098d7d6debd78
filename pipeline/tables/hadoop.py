"""Heads behind a URL, by Hadoop's file systems: ``s3a://``, ``hdfs://``, ``abfs://``, ``gs://``.

A head is a file whose name is its number, and is created only if there is none of that name, which
these stores decide in one step.  So of two runs that began at the same head one is told so,
whatever else happened.  That they do not even begin is up to a *lease*: a file made in the same
way, which its owner renews; one that was not renewed for a while is a dead process's, and the next
may take it.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pipeline.tables import AREAS, Head, LakeError
from pipeline.tables.local import head_of, text_of

HEADS: Final = "_heads"
LEASES: Final = "_lease"
KEPT: Final = 20
RENEWED_EVERY_S: Final = 10.0
DEAD_AFTER_S: Final = 60.0
_CONDITIONAL: Final = "fs.option.create.conditional.overwrite"
"""Of s3a, whose objects else take each other's place without a word."""

_REASONS: Final = (
    ("UnknownStoreException", "there is no such bucket"),
    ("AccessDenied", "access is refused: wrong credentials, or no right to it"),
    ("InvalidAccessKeyId", "access is refused: wrong credentials"),
    ("SignatureDoesNotMatch", "access is refused: wrong credentials"),
    ("NoAuthWithAWS", "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("NoAwsCredentials", "there are no credentials: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"),
    ("UnsupportedFileSystemException", "no file system is known by that name"),
    ("ClassNotFoundException", "the jars for such a place are not there"),
    ("UnknownHostException", "it cannot be reached: no such host"),
    ("ConnectException", "it cannot be reached: nobody answers there"),
    ("ConnectTimeout", "it cannot be reached: nobody answers there"),
    ("Unable to execute HTTP request", "it cannot be reached"),
)


def reason_of(text: str) -> str | None:
    """What is wrong with a place, of what Java says about it; never a line of its trace."""
    return next((reason for sign, reason in _REASONS if sign in text), None)


@dataclass(frozen=True, slots=True)
class HadoopPlace:
    root: str
    spark: SparkSession

    def head(self) -> Head:
        with _named(self.root):
            files = self._files(HEADS)
            if not files:
                return self._nothing_else()
            return head_of(self._read(f"{HEADS}/{max(files)}"), self.root)

    def commit(self, head: Head) -> None:
        with _named(self.root):
            if not self._created(f"{HEADS}/{head.number:08}.json", text_of(head)):
                raise LakeError(
                    f"another process has written to {self.root} meanwhile: start again"
                )
            for name in sorted(self._files(HEADS))[:-KEPT]:
                self._delete(f"{HEADS}/{name}")

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        with _named(self.root):
            lease = self._lease()
        ended = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(lease, ended), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            with _named(self.root):
                self._delete(lease)

    def _lease(self) -> str:
        names = sorted(self._files(LEASES))
        number = 1
        if names:
            number = int(names[-1].partition(".")[0]) + 1
            self._refuse_living(names[-1])
        name = f"{LEASES}/{number:08}.json"
        if not self._created(name, _whose()):
            raise LakeError(f"another process is writing to {self.root}")
        for old in names:
            self._delete(f"{LEASES}/{old}")
        return name

    def _refuse_living(self, name: str) -> None:
        whose = json.loads(self._read(f"{LEASES}/{name}"))
        age_s = time.time() - self._changed_s(f"{LEASES}/{name}")
        if age_s < DEAD_AFTER_S and not _is_dead(whose):
            raise LakeError(
                f"another process is writing to {self.root}: {whose.get('pid')} on"
                f" {whose.get('host')}; if it was killed, try again in {DEAD_AFTER_S:.0f} s"
            )

    def _renew(self, lease: str, ended: threading.Event) -> None:
        while not ended.wait(RENEWED_EVERY_S):
            try:
                self._write(lease, _whose())
            except Py4JJavaError:
                return  # The commit will say what is wrong.

    # --- files, by Java -----------------------------------------------------------------------

    def _system(self) -> Any:  # noqa: ANN401 - Java's, without types
        return self._path("").getFileSystem(self.spark._jsc.hadoopConfiguration())  # noqa: SLF001 - the only way to Hadoop

    def _path(self, name: str) -> Any:  # noqa: ANN401 - likewise
        java: Any = self.spark._jvm  # noqa: SLF001 - the only way to Hadoop
        return java.org.apache.hadoop.fs.Path(f"{self.root.rstrip('/')}/{name}")

    def _files(self, directory: str) -> list[str]:
        """Numbers alone."""
        path, system = self._path(directory), self._system()
        if not system.exists(path):
            return []
        names = [status.getPath().getName() for status in system.listStatus(path)]
        return [name for name in names if name.partition(".")[0].isdigit()]

    def _nothing_else(self) -> Head:
        path, system = self._path(""), self._system()
        found = list(system.listStatus(path)) if system.exists(path) else []
        known = {LEASES, HEADS, *AREAS}
        for status in found:
            name = status.getPath().getName()
            if name not in known:
                raise LakeError(f"{self.root} holds something else ({name}): name an empty place")
        return Head()

    def _read(self, name: str) -> str:
        stream = self._system().open(self._path(name))
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", "replace")
        finally:
            stream.close()

    def _created(self, name: str, text: str) -> bool:
        """False if it is there already."""
        builder = self._system().createFile(self._path(name)).overwrite(False)
        builder = builder.recursive()
        if self.root.startswith("s3a:"):
            builder = builder.opt(_CONDITIONAL, "true")
        try:
            stream = builder.build()
            stream.write(bytearray(text.encode()))
            stream.close()
        except Py4JJavaError as error:
            told = str(error)
            if "FileAlreadyExists" in told or "RemoteFileChanged" in told or "412" in told:
                return False
            raise
        return True

    def _write(self, name: str, text: str) -> None:
        stream = self._system().create(self._path(name), True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def _delete(self, name: str) -> None:
        self._system().delete(self._path(name), False)

    def _changed_s(self, name: str) -> float:
        return float(self._system().getFileStatus(self._path(name)).getModificationTime()) / 1_000


def _whose() -> str:
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid()})


def _is_dead(whose: dict[str, Any]) -> bool:
    """Of a process of this machine it can be known."""
    if whose.get("host") != socket.gethostname() or not isinstance(whose.get("pid"), int):
        return False
    try:
        os.kill(whose["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _named(root: str) -> Iterator[None]:
    """Raises LakeError for what Java says."""
    try:
        yield
    except Py4JJavaError as error:
        told = str(error.java_exception) + " " + str(error)
        why = reason_of(told) or told.strip().splitlines()[0]
        raise LakeError(f"{root}: {why}") from error
