"""A gateway with simulated peripherals, started by `gattherd simulate`."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import typing

LAB = """\
peripherals:
  - {name: strap, count: 3, kind: heart-rate, address: 'C0:FF:EE:00:00:01', rate: 5, rr: 1, battery: 97}
  - {name: dial, kind: number-service, address: 'C0:FF:EE:00:00:10', value: 42}
"""

MANY = """\
peripherals:
  - {name: strap, count: 200, kind: heart-rate, address: 'C0:FF:EE:00:01:00', rate: 10, rr: 1, energy: true, battery: 97}
"""


# Long values and texts, and more metrics than a card has lines.
KINDS = """\
peripherals:
  - name: strap
    kind: heart-rate
    address: 'C0:FF:EE:00:00:01'
    rate: 2
    rr: 1
    energy: true
    battery: 97
    information:
      manufacturer: A manufacturer with quite a long name, Limited
      model: HRM-3000-Professional-Edition
      serial: SN-2026-11-0000000000042
      firmware: 12.34.56-release-candidate-7
  - {name: weather, kind: environmental, address: 'C0:FF:EE:00:00:02', rate: 1}
  - {name: fever, kind: thermometer, address: 'C0:FF:EE:00:00:03', rate: 1}
  - {name: a-device-whose-name-is-longer-than-most, kind: battery, address: 'C0:FF:EE:00:00:04', level: 55}
"""


class Gateway:
    """A running gateway from the programs in a folder; a context manager that stops it."""

    def __init__(self, programs: pathlib.Path, scenario: str):
        self._programs = programs
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='gattherd-browser-'))
        path = self.folder / 'scenario.yaml'
        path.write_text(scenario)
        self._process = subprocess.Popen(
            [programs / 'gattherd', 'simulate', '--keep', self.folder / 'work', path],
            stdout=subprocess.PIPE, text=True)
        output = ''
        for line in self._process.stdout:
            output += line
            if line.endswith('devices are ready\n'):
                break
        else:
            raise AssertionError(f'the simulation does not start: {output}')
        self.url = re.search(r'http://127\.0\.0\.1:\d+/', output).group()
        self._bus = re.search(r"--bus '([^']+)'", output).group(1)

    def __enter__(self) -> 'Gateway':
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self.folder)

    @property
    def token(self) -> str:
        return (self.folder / 'work' / 'http-token').read_text().strip()

    @contextlib.contextmanager
    def frozen(self) -> typing.Iterator[None]:
        """Suspends the daemon, which keeps its connections."""
        daemon = self._daemon()
        os.kill(daemon, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(daemon, signal.SIGCONT)

    @contextlib.contextmanager
    def gone(self) -> typing.Iterator[None]:
        """Suspends the simulator: there are no new values."""
        simulator = self._process_of('gattherd-sim', b'run')
        os.kill(simulator, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(simulator, signal.SIGCONT)

    def _daemon(self) -> int:
        return self._process_of('gattherd', b'run')

    def _process_of(self, program: str, command: bytes) -> int:
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                words = (folder / 'cmdline').read_bytes().split(b'\0')
                if words[1:2] == [command] and str(self.folder).encode() in b' '.join(words):
                    if (folder / 'comm').read_text() == program + '\n':
                        return int(folder.name)
        raise AssertionError(f'{program} does not run')

    def inject(self, *command: str) -> None:
        """Sends a command to the simulator, for example `drop strap-1`."""
        subprocess.run([self._programs / 'gattherd-sim', 'ctl', '--bus', self._bus, *command],
                       check=True, stdout=subprocess.DEVNULL)
