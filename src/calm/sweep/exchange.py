"""Run folders that travel by way of an fsspec address, where machines share no file system.

A run is one archive there, NAME.zip, replaced whole: of two machines that write to it, as when one
was only thought to be lost, either leaves a run that can go on.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from calm.errors import CalmError, blame
from calm.progress import say
from calm.sweep.work import Job, Outcome, perform

CHECKPOINT = Path("checkpoint", "learner.safetensors")
LOOK_SECONDS = 1.0  # between two looks at whether there is a new checkpoint


class Exchange:
    """The address."""

    def __init__(self, address: str) -> None:
        try:
            from fsspec.core import url_to_fs

            self._files, self._root = url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise CalmError(f"--via {address} cannot be used: {error}") from None
        self._address = address

    def has(self, name: str) -> bool:
        """Whether a run is there."""
        with blame(f"looking into {self._address}"):
            return bool(self._files.exists(self._place(name)))

    def push(self, out: Path, name: str) -> None:
        """Take a copy of the run's folder there; what it holds may grow meanwhile.

        The checkpoint is read first: the records always have at least the lines that it needs.
        """
        folder, log = out / name, out / "logs" / f"{name}.txt"
        files = [path for path in folder.rglob("[!.]*") if path.is_file()]
        files.sort(key=lambda path: path != folder / CHECKPOINT)
        with blame(f"copying to {self._address}"), TemporaryDirectory(prefix="calm-") as scratch:
            archive = Path(scratch) / "run.zip"
            with ZipFile(archive, "w") as zipped:
                for path in (*files, *([log] if log.is_file() else [])):
                    zipped.write(path, path.relative_to(out))
            self._files.makedirs(self._root, exist_ok=True)
            self._files.put_file(str(archive), self._place(name) + ".new")
            self._files.mv(self._place(name) + ".new", self._place(name))

    def pull(self, out: Path, name: str) -> None:
        """Put the run's folder here, in place of one that may be there."""
        with (
            blame(f"copying from {self._address}"),
            TemporaryDirectory(prefix=".", dir=out) as scratch,
        ):
            archive, unpacked = Path(scratch) / "run.zip", Path(scratch) / "run"
            self._files.get_file(self._place(name), str(archive))
            with ZipFile(archive) as zipped:
                zipped.extractall(unpacked)
            shutil.rmtree(out / name, ignore_errors=True)
            (out / "logs").mkdir(exist_ok=True)
            for path in (Path(name), Path("logs", f"{name}.txt")):
                if (unpacked / path).exists():
                    (unpacked / path).replace(out / path)

    @contextmanager
    def keeping(self, out: Path, name: str) -> Iterator[None]:
        """Take every checkpoint of the run there while it lasts, and all of it in the end."""
        over = threading.Event()
        checkpoint = out / name / CHECKPOINT

        def watch() -> None:
            known = 0
            while not over.wait(LOOK_SECONDS):
                written = checkpoint.stat().st_mtime_ns if checkpoint.is_file() else 0
                if written != known:
                    try:
                        self.push(out, name)
                        known = written
                    except CalmError as error:  # it is tried again, and at the end in earnest
                        say(str(error))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.push(out, name)

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}.zip"


def perform_via(address: str, job: Job) -> Outcome:
    """Fetch a run, go on with it in a folder of this machine, and bring it back."""
    name = job.planned.name
    with TemporaryDirectory(prefix="calm-") as scratch:
        out = Path(scratch)
        try:
            exchange = Exchange(address)
            if exchange.has(name):
                exchange.pull(out, name)
            with exchange.keeping(out, name):
                here = job.here if job.here.is_dir() else out
                return perform(replace(job, out=out, here=here))
        except CalmError as error:
            return Outcome("failed", str(error))
