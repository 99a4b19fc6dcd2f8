"""Downloads that can be trusted: resumed, retried, checked, and put in place only when whole."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from calm.corpus.base import Tell
from calm.errors import CalmError, RunFailedError
from calm.files import locked, replace_json, room_in, sha256

CHUNK = 1 << 18
TRIES, FIRST_PAUSE = 5, 1.0
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Remote:
    """A file to download: its name here, its addresses in order, what is known of it."""

    name: str
    addresses: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None


def obtain(
    remote: Remote, folder: Path, tell: Tell, timeout: float = 60.0, pause: float = FIRST_PAUSE
) -> Path:
    """Return a remote file's path in `folder`, downloading what is not there yet.

    What is there is hashed, too, and one that somebody put there by hand is taken in. The hash has
    to be the one that is known beforehand, or else the one that was pinned.
    """
    path = folder / remote.name
    lock = folder / f".{remote.name}.lock"
    with locked(lock, f"downloading {path}"), room_in(folder):
        if path.is_file():
            _accept(remote, path, path, "put there by hand")
            return path
        address = _from_mirrors(remote, path, tell, timeout, pause)
        _accept(remote, _part(path), path, address)
        _part(path).replace(path)
        _part_note(path).unlink(missing_ok=True)
    return path


def pin(remote: Remote, folder: Path) -> None:
    """Accept no other file from now on: a set was built from this one, so it is no error page."""
    manifest = read_manifest(folder)
    manifest[remote.name]["pinned"] = True
    replace_json(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is on record of every download: address, size, date and SHA-256."""
    try:
        data: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CalmError(f"{folder / MANIFEST} is damaged ({error}): delete it") from None
    return data


def verify_downloads(folder: Path) -> list[str]:
    """Compare every download that is here with its hash; returns what is wrong."""
    return [
        f"{folder / name} has changed: its SHA-256 is not the one it had when it came; delete it "
        "to have it downloaded again"
        for name, noted in read_manifest(folder).items()
        if (folder / name).is_file() and sha256(folder / name) != noted["sha256"]
    ]


def _accept(remote: Remote, file: Path, path: Path, address: str) -> None:
    """Check a whole file and note it in the manifest."""
    manifest = read_manifest(path.parent)
    noted = manifest.get(path.name, {})
    size, found = file.stat().st_size, sha256(file)
    expected = remote.sha256 or (noted.get("pinned") and noted["sha256"])
    if expected and found != expected:
        origin = "the published one" if remote.sha256 else "the one that sets were built from"
        if file == path:
            remedy = f"delete {path} to have it downloaded again"
        else:
            file.unlink()
            remedy = f"try again later, or put the file into {path.parent}"
        if not remote.sha256:
            remedy += f"; to accept a new one, take the old one out of {path.with_name(MANIFEST)}"
        raise CalmError(
            f"{path.name} ({address}) is not {origin}: its SHA-256 is {found}, expected "
            f"{expected}; {remedy}"
        )
    if file == path and found == noted.get("sha256"):
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    note = {"address": address, "size": size, "date": now, "sha256": found}
    note["pinned"] = noted.get("pinned", False)
    replace_json(path.with_name(MANIFEST), {**manifest, path.name: note})


def _from_mirrors(remote: Remote, path: Path, tell: Tell, timeout: float, pause: float) -> str:
    """Download from the first address that works; returns it."""
    reasons = []
    for address in remote.addresses:
        try:
            _download(address, remote.size, path, tell, timeout, pause)
        except _UnavailableError as error:
            reasons.append(f"{address}: {error}")
        else:
            return address
    raise RunFailedError(
        f"{remote.name} could not be downloaded ({'; '.join(reasons)}): try again later, "
        f"or put the file into {path.parent}"
    )


class _UnavailableError(Exception):
    """An address does not have what is wanted, or not now."""


class _CutError(Exception):
    """A connection ended early."""


def _download(
    address: str, size: int | None, path: Path, tell: Tell, timeout: float, pause: float
) -> None:
    """Fill the part file from an address; what breaks off is taken up again."""
    failures = 0
    while True:
        before = _part_size(path, address)
        try:
            _fetch_rest(address, before, size, path, tell, timeout)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # asked for what is beyond the end: begin again
                _part(path).unlink(missing_ok=True)
            elif error.code not in (408, 429, 500, 502, 503, 504):
                raise _UnavailableError(f"the server says {error.code} {error.reason}") from None
            reason = f"the server says {error.code} {error.reason}"
        except urllib.error.URLError as error:
            reason = str(error.reason)
        except (_CutError, ConnectionError, TimeoutError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
        else:
            return
        failures = 1 if _part_size(path, address) > before else failures + 1
        if failures == TRIES:
            raise _UnavailableError(reason)
        time.sleep(pause * 2 ** (failures - 1))


def _fetch_rest(
    address: str, have: int, size: int | None, path: Path, tell: Tell, timeout: float
) -> None:
    headers = {"User-Agent": f"calm-bench/{version('calm-bench')}", "Accept-Encoding": "identity"}
    if have:
        validator = json.loads(_part_note(path).read_text(encoding="utf-8"))["validator"]
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    request = urllib.request.Request(address, headers=headers)
    opener = urllib.request.build_opener()  # a new one heeds the proxies as they are now
    with opener.open(request, timeout=timeout) as response:
        resumed = response.status == 206
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else 0
        if size and total and total != size:
            raise _UnavailableError(f"has {total:,} bytes, not {size:,}")
        if not resumed:
            validator = _validator(response.headers)
            _part_note(path).write_text(json.dumps({"address": address, "validator": validator}))
        with _part(path).open("ab" if resumed else "wb") as part:
            while chunk := response.read(CHUNK):
                part.write(chunk)
                have += len(chunk)
                tell(f"download {path.name}", have, total)
            part.flush()
            os.fsync(part.fileno())
    if have < (total or size or 0):
        raise _CutError(f"the connection was cut after {have:,} of {total or size:,} bytes")


def _validator(headers: Any) -> str | None:
    """Return what tells whether a file on a server is still the same, if anything does."""
    tag: str | None = headers.get("ETag")
    last: str | None = headers.get("Last-Modified")
    return tag if tag and not tag.startswith("W/") else last


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _part_note(path: Path) -> Path:
    return path.with_name(f".{path.name}.part.json")


def _part_size(path: Path, address: str) -> int:
    """Return how much there is already that can be added to."""
    try:
        note = json.loads(_part_note(path).read_text(encoding="utf-8"))
        usable = note["address"] == address and note["validator"]
        return _part(path).stat().st_size if usable else 0
    except (OSError, ValueError, KeyError):
        return 0
