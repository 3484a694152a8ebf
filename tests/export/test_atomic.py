"""Where a file is written: only over plain files, never readable by more people, no litter."""

import contextlib
import os
import stat
import threading

import pytest

from mercer import RBF, load, save
from mercer.export import atomic

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@posix
def test_a_pipe_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match="device, pipe or socket"):
        save(RBF(), path)
    assert stat.S_ISFIFO(path.stat().st_mode)


@posix
def test_a_device_is_not_replaced(tmp_path):
    """/dev/null itself could be lost where root saves: a link to it must not lead there."""
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for target in (link, "/dev/null"):
        with pytest.raises(ValueError, match="device, pipe or socket"):
            save(RBF(), target)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_paths_of_bytes_work(path):
    save(RBF(0.5), os.fsencode(path))
    assert load(os.fsencode(path)) == RBF(0.5)
    assert os.listdir(path.parent) == [path.name]


def test_long_names_work(tmp_path):
    for name in ("m" * 250, "\u00e9" * 120):
        save(RBF(0.5), tmp_path / name)
        assert load(tmp_path / name) == RBF(0.5)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o660])
def test_the_new_file_is_never_open_to_more_people(path, mode, monkeypatch):
    save(RBF(0.5), path)
    path.chmod(mode)
    seen = []
    opened, fdopen = os.open, os.fdopen

    def watched_open(name, *args, **kwargs):
        descriptor = opened(name, *args, **kwargs)
        seen.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    @contextlib.contextmanager
    def watched(descriptor, how):
        with fdopen(descriptor, how) as file:

            class Watched:
                def write(self, data):
                    assert os.fstat(descriptor).st_mode & 0o777 == mode
                    file.write(data)

                flush, fileno = file.flush, file.fileno

            yield Watched()

    monkeypatch.setattr(atomic.os, "open", watched_open)
    monkeypatch.setattr(atomic.os, "fdopen", watched)
    save(RBF(0.7), path)
    monkeypatch.undo()
    assert seen[0] & ~mode == 0  # not a moment of more
    assert path.stat().st_mode & 0o777 == mode
    path.chmod(0o600)
    assert load(path) == RBF(0.7)


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_what_a_killed_save_leaves_is_removed_by_the_next(path, monkeypatch):
    child = os.fork()
    if child == 0:
        atomic.os.replace = lambda *_: os._exit(0)  # dies with its temporary file written
        save(RBF(), path)
    os.waitpid(child, 0)
    assert len(os.listdir(path.parent)) == 1
    save(RBF(0.5), path)
    assert os.listdir(path.parent) == [path.name]


def test_other_files_and_other_saves_are_left_alone(path):
    names = [
        ".model.mercer.tmp",
        ".model.mercer.1234abcd.tmp",
        ".other.mercer.tmp",
        "model.mercer~",
    ]
    for name in names:
        (path.parent / name).write_text("mine")
    running = f"{atomic._stem(path.name)}{os.getpid()}-0123abcd.tmp"
    (path.parent / running).write_text("of a save that is still running")
    save(RBF(), path)
    assert sorted(os.listdir(path.parent)) == sorted([*names, running, path.name])
    os.utime(path.parent / running, (0, 0))  # its number was given to another process
    save(RBF(), path)
    assert sorted(os.listdir(path.parent)) == sorted([*names, path.name])


def test_saves_at_once_leave_a_whole_file(path):
    kernels = [RBF(0.1 * i) for i in range(1, 9)]
    threads = [threading.Thread(target=save, args=(k, path)) for k in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(path) in kernels
    assert os.listdir(path.parent) == [path.name]
