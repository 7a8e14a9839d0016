"""Stalls of processes and disks."""
import contextlib
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator


@contextlib.contextmanager
def stopped(process: subprocess.Popen) -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Disk(contextlib.AbstractContextManager):
    """A file system in a file whose writes the kernel can hold back. Needs root and loop devices."""

    def __init__(self, folder: str):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='gattherd-disk-', dir=folder))
        self.folder = self.root / 'mounted'

    def __enter__(self) -> 'Disk':
        try:
            self.folder.mkdir()
            image = self.root / 'image'
            with open(image, 'wb') as file:
                file.truncate(1 << 30)
            self.run('mkfs.ext4', '-q', image)
            self.run('mount', '-o', 'loop', image, self.folder)
        except BaseException:
            shutil.rmtree(self.root)
            raise
        return self

    def __exit__(self, *_) -> None:
        # The last process that used it may still be ending.
        for _ in range(50):
            if subprocess.run(['umount', self.folder], stderr=subprocess.DEVNULL).returncode == 0:
                shutil.rmtree(self.root)
                return
            time.sleep(0.1)
        print(f'{self.folder} is in use and stays mounted', file=sys.stderr)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        self.run('fsfreeze', '--freeze', self.folder)
        try:
            yield
        finally:
            self.run('fsfreeze', '--unfreeze', self.folder)

    @staticmethod
    def run(*words) -> None:
        outcome = subprocess.run([str(word) for word in words], stderr=subprocess.PIPE, text=True)
        if outcome.returncode != 0:
            raise OSError(outcome.stderr.strip())
