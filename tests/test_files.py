import os

import pytest

from calm.errors import CalmError
from calm.files import files_below, locked, make_folder


def test_files_are_found_at_any_depth(tmp_path):
    for name in ("b/c/2", "a", "b/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    assert files_below(tmp_path) == [tmp_path / name for name in ("a", "b/1", "b/c/2")]


@pytest.mark.parametrize("closed", ["b", "b/c"])
def test_a_folder_that_may_not_be_read_is_not_passed_over(tmp_path, monkeypatch, closed):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "1").write_text("x")
    scandir = os.scandir

    def refuse(path):
        if str(path) == str(tmp_path / closed):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CalmError, match=f"{tmp_path / closed} cannot be read: Permission denied"):
        files_below(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    for wrong in (tmp_path / "file", tmp_path / "file" / "x"):
        with pytest.raises(CalmError, match=f"cannot write to {wrong}: "):
            make_folder(wrong)
    with pytest.raises(CalmError, match="cannot write to"), locked(wrong / ".lock", "busy"):
        pass
    make_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
