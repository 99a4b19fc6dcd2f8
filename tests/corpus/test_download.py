"""Downloads against a real server on this machine."""

import hashlib
import json
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from calm.corpus.download import Remote, obtain, pin, read_manifest, verify_downloads
from calm.errors import CalmError, RunFailedError
from helpers import small_files

DATA = random.Random(0).randbytes(400_000)


class Site:
    """What the server holds, how it misbehaves, and what it was asked."""

    def __init__(self):
        self.data, self.tag, self.ranges = DATA, '"one"', True
        self.cuts, self.answers = [], []  # bytes sent before the connection is cut; codes to answer
        self.length = 0  # what to add to the true length
        self.pause = 0.0  # after every 10,000 bytes
        self.refused_agents = "Python-urllib"
        self.asked = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site = self.server.site
        site.asked.append((self.path, self.headers.get("Range")))
        if self.path == "/gone" or site.refused_agents in self.headers.get("User-Agent", ""):
            return self.refuse(404 if self.path == "/gone" else 403)
        if site.answers:
            return self.refuse(site.answers.pop(0))
        start, wanted = 0, self.headers.get("Range")
        if wanted and site.ranges and self.headers.get("If-Range") == site.tag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header(
                "Content-Range", f"bytes {start}-{len(site.data) - 1}/{len(site.data)}"
            )
        else:
            self.send_response(200)
        if site.tag:
            self.send_header("ETag", site.tag)
        self.send_header("Content-Length", str(len(site.data) - start + site.length))
        self.end_headers()
        return self.send(site, site.data[start:])

    def send(self, site, body):
        if site.cuts:
            body = body[: site.cuts.pop(0)]
            self.close_connection = True
        for i in range(0, len(body), 10_000):
            self.wfile.write(body[i : i + 10_000])
            time.sleep(site.pause)
        if site.length:
            self.close_connection = True

    def refuse(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def served():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = Site()
    server.handle_error = lambda *_: None  # a client that was killed
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.site.address = f"http://127.0.0.1:{server.server_port}"
    yield server.site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def site():
    with served() as site:
        yield site


def get(site, folder, *paths, timeout=5.0, **known):
    addresses = tuple(f"{site.address}/{path}" for path in paths or ("file",))
    remote = Remote("file.bin", addresses, **known)
    return obtain(remote, folder, lambda *_: None, timeout=timeout, pause=0.001)


def test_a_file_comes_whole_and_goes_on_record(site, tmp_path):
    told = []
    remote = Remote("file.bin", (f"{site.address}/file",))
    path = obtain(remote, tmp_path / "d", lambda *work: told.append(work))
    assert path.read_bytes() == DATA
    assert told[-1] == ("download file.bin", len(DATA), len(DATA))
    note = read_manifest(tmp_path / "d")["file.bin"]
    assert note["address"] == f"{site.address}/file"
    assert note["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert note["size"] == len(DATA)
    assert {p.name for p in path.parent.iterdir()} == {
        "file.bin", "manifest.json", ".file.bin.lock"
    }  # fmt: skip
    get(site, tmp_path / "d")
    assert len(site.asked) == 1  # what is here is not fetched again


def test_cut_connections_are_taken_up_where_they_broke(site, tmp_path):
    site.cuts = [1, 100_000, 0, 33_333, 0, 0, 70_000]
    assert get(site, tmp_path).read_bytes() == DATA
    asked = [wanted for _, wanted in site.asked]
    assert asked[:3] == [None, "bytes=1-", "bytes=100001-"]


def test_without_ranges_or_a_tag_it_begins_again(site, tmp_path):
    for site.ranges, site.tag in ((False, '"one"'), (True, None), (True, 'W/"weak"')):
        site.cuts = [5000, 100]
        folder = tmp_path / f"{site.ranges}{site.tag}".replace("/", "")
        assert get(site, folder).read_bytes() == DATA


def test_content_that_changes_on_the_way_is_not_mixed(site, tmp_path):
    site.cuts = [50_000] + [0] * 4
    with pytest.raises(RunFailedError, match="cut after"):
        get(site, tmp_path)
    site.data, site.tag, site.cuts = DATA[::-1], '"two"', []
    assert get(site, tmp_path).read_bytes() == DATA[::-1]


def test_busy_servers_are_asked_again_but_not_for_ever(site, tmp_path):
    site.answers = [503, 429, 500]
    assert get(site, tmp_path / "a").read_bytes() == DATA
    site.answers = [503] * 50
    with pytest.raises(RunFailedError, match="the server says 503 Service Unavailable"):
        get(site, tmp_path / "b")
    assert len(site.answers) == 45


def test_mirrors_are_tried_in_order(site, tmp_path):
    assert get(site, tmp_path, "gone", "file").read_bytes() == DATA
    assert [path for path, _ in site.asked] == ["/gone", "/file"]
    assert read_manifest(tmp_path)["file.bin"]["address"].endswith("/file")


def test_a_file_that_is_nowhere_is_one_sentence(site, tmp_path):
    with pytest.raises(RunFailedError) as error:
        get(site, tmp_path, "gone")
    assert "gone: the server says 404" in str(error.value)
    assert f"or put the file into {tmp_path}" in str(error.value)


def test_a_wrong_length_is_refused(site, tmp_path):
    with pytest.raises(RunFailedError, match="has 400,000 bytes, not 5"):
        get(site, tmp_path / "a", size=5)
    site.length = 100
    with pytest.raises(RunFailedError, match="cut after 400,000 of 400,100 bytes"):
        get(site, tmp_path / "b")


def test_a_pinned_hash_is_enforced(site, tmp_path):
    right = hashlib.sha256(DATA).hexdigest()
    assert get(site, tmp_path / "a", sha256=right).read_bytes() == DATA
    with pytest.raises(CalmError, match="is not the published one"):
        get(site, tmp_path / "b", sha256="0" * 64)
    assert not (tmp_path / "b" / "file.bin").exists()


FILE = Remote("file.bin", ())


def test_a_download_that_served_pins_what_comes_later(site, tmp_path):
    get(site, tmp_path).unlink()
    pin(FILE, tmp_path)
    get(site, tmp_path).unlink()
    site.data = DATA[1:]
    for _ in range(2):
        with pytest.raises(
            CalmError, match="is not the one that sets were built from.*; try again"
        ):
            get(site, tmp_path)
    (tmp_path / "manifest.json").unlink()
    assert get(site, tmp_path).read_bytes() == DATA[1:]


def test_a_download_that_never_served_can_be_replaced(site, tmp_path):
    site.data = b"<html>Log in first</html>"
    get(site, tmp_path).unlink()
    site.data = DATA
    assert get(site, tmp_path).read_bytes() == DATA
    for content in (DATA[:1000], DATA):
        (tmp_path / "file.bin").write_bytes(content)
        assert get(site, tmp_path).read_bytes() == content
    note = read_manifest(tmp_path)["file.bin"]
    assert note["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert note["address"] == "put there by hand"


def test_a_file_put_there_by_hand_is_taken_in_if_it_matches(site, tmp_path):
    (tmp_path / "file.bin").write_bytes(DATA)
    get(site, tmp_path)
    assert site.asked == []
    pin(FILE, tmp_path)
    (tmp_path / "file.bin").write_bytes(b"another")
    with pytest.raises(CalmError, match="by hand.* is not the one that sets were built from"):
        get(site, tmp_path)


def test_a_file_is_compared_with_its_hash_whenever_it_is_used(site, tmp_path):
    path = get(site, tmp_path)
    pin(FILE, tmp_path)
    path.write_bytes(DATA[:-1] + b"x")
    with pytest.raises(CalmError, match=f"; delete {path} to have it downloaded again"):
        get(site, tmp_path)
    path.unlink()
    assert get(site, tmp_path).read_bytes() == DATA


def test_verify_finds_what_changed(site, tmp_path):
    path = get(site, tmp_path)
    assert verify_downloads(tmp_path) == []
    path.write_bytes(DATA[:-1] + b"x")
    assert verify_downloads(tmp_path) == [
        f"{path} has changed: its SHA-256 is not the one it had when it came; delete it to have "
        "it downloaded again"
    ]


def test_a_server_that_stalls_is_given_up(site, tmp_path):
    site.pause = 0.4
    with pytest.raises(RunFailedError, match="timed out"):
        get(site, tmp_path, timeout=0.1)


def test_an_unreachable_server_is_one_sentence(tmp_path):
    remote = Remote("file.bin", ("http://127.0.0.1:9/file",))
    with pytest.raises(RunFailedError, match="Connection refused"):
        obtain(remote, tmp_path, lambda *_: None, pause=0.001)


def test_a_proxy_is_honoured(site, tmp_path, monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", site.address)
    remote = Remote("file.bin", ("http://nowhere.invalid/file",))
    assert obtain(remote, tmp_path, lambda *_: None).read_bytes() == DATA
    assert site.asked[0][0] == "http://nowhere.invalid/file"


def test_a_full_disk_names_the_folder_and_loses_nothing(site, tmp_path):
    with (
        small_files(150_000),
        pytest.raises(RunFailedError, match=f"no room for more in {tmp_path} "),
    ):
        get(site, tmp_path)
    assert get(site, tmp_path).read_bytes() == DATA
    assert [wanted for _, wanted in site.asked] == [None, "bytes=150000-"]


PROGRAM = """
import sys
from pathlib import Path
from calm.corpus.download import Remote, obtain
obtain(Remote("file.bin", (sys.argv[1],)), Path(sys.argv[2]), lambda *_: print("on", flush=True))
"""


def test_a_download_killed_anywhere_goes_on(site, tmp_path):
    site.pause, chance = 0.004, random.Random(1)
    command = [sys.executable, "-c", PROGRAM, f"{site.address}/file", str(tmp_path)]
    for _ in range(6):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.04))
        process.kill()
        process.communicate()
    site.pause = 0
    assert get(site, tmp_path).read_bytes() == DATA
    resumed = [wanted for _, wanted in site.asked if wanted]
    assert resumed
    assert json.loads((tmp_path / "manifest.json").read_text())["file.bin"]["size"] == len(DATA)
