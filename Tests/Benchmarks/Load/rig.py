"""A gateway under load: simulated peripherals, a broker, a collector and a subscriber, each a process of its own."""
import collections
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

MESSAGE = re.compile(r'^(\d+\.\d+) (\d) gattherd/bench/(d\d+)/heart_rate \[?{')
# A message may have several readings.
READING = re.compile(r'{(?:"seq":(\d+))?[^{}]*"heart_rate":\s?(\d+)')
# The values of a device repeat.
CYCLE = 120

# The peripherals log the notifications of one turn together, after some of them were sent.
EARLY = 0.01


def address(device: int) -> str:
    return f'C0:FF:EE:00:{device // 256:02X}:{device % 256:02X}'


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


class Meter:
    """The CPU time and wake-ups of a process's threads from now on. Threads that end meanwhile do not count."""

    def __init__(self, pid: int):
        self.pid = pid
        self.start = self.threads()

    def threads(self) -> dict[str, tuple[int, int]]:
        """The scheduler's CPU time in ns, and the number of wake-ups of the thread."""
        answer = {}
        for folder in pathlib.Path(f'/proc/{self.pid}/task').iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                time_used = int((folder / 'schedstat').read_text().split()[0])
                waits = int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', (folder / 'status').read_text(), re.M)[1])
                answer[folder.name] = (time_used, waits)
        return answer

    def read(self) -> tuple[int, int]:
        """Nanoseconds and wake-ups since the start."""
        deltas = [(end, self.start.get(thread, (0, 0))) for thread, end in self.threads().items()]
        return sum(end[0] - start[0] for end, start in deltas), sum(end[1] - start[1] for end, start in deltas)


def memory(pid: int) -> dict[str, float]:
    """Resident memory in MB, total and without file pages."""
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return {name: int(re.search(rf'^{name}:\s*(\d+)', text, re.M)[1]) / 1024 for name in ('VmRSS', 'RssAnon')}


class Rig(contextlib.ExitStack):
    """Starts peripherals and broker, and ends all started processes with it."""

    # The topic of the readings, and a line of the subscriber: time, retained flag and device.
    topic, message = 'gattherd/bench/+/heart_rate', MESSAGE

    def __init__(
        self, programs: pathlib.Path, folder: str, devices: int, rate: float, *, truth: bool = True,
        connect: str = '20ms', failing: int = 0, disk: pathlib.Path | None = None, batch: str | None = None,
        sockets: bool = False,
    ):
        """A connect takes `connect`; the first one to each of `failing` devices fails. The history is on `disk`.

        gattherd publishes the readings of `batch` in one message, and receives notifications by `sockets` or by signals.
        """
        super().__init__()
        self.disk, self.batch, self.sockets = disk, batch, sockets
        self.connect, self.failing = connect, failing
        self.programs, self.devices, self.rate = programs, devices, rate
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='gattherd-load-', dir=folder))
        self.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.start_broker_and_peripherals(truth)
        except BaseException:
            self.close()
            raise

    def start_broker_and_peripherals(self, truth: bool) -> None:
        self.port = free_port()
        self.write('mosquitto.conf', [f'listener {self.port} 127.0.0.1', 'allow_anonymous true', 'max_queued_messages 0'])
        self.broker = self.start('mosquitto', '-c', 'mosquitto.conf')
        self.write('scenario.yaml', self.scenario())
        self.truth = self.folder / 'truth.jsonl'
        log = ['--truth', self.truth] if truth else []
        self.simulator = self.start(self.programs / 'gattherd-sim', 'run', *log, 'scenario.yaml', output='bus')
        self.bus = self.await_text('bus')

    def scenario(self) -> list[str]:
        return [
            'timing: quick',
            f'adapters: [{{name: hci0, slots: {self.devices + 1}}}]',
            'peripherals:', *self.peripherals(1, self.devices - self.failing, 0),
            *self.peripherals(self.devices - self.failing + 1, self.failing, 1),
        ]

    def peripherals(self, first: int, count: int, failures: int) -> list[str]:
        return [
            f'  - {{name: d{first}, kind: heart-rate, address: "{address(first)}", count: {count}, rate: {self.rate}, '
            f'connect_latency: {self.connect}, connect_failures: {failures}}}',
        ] if count else []

    def write(self, name: str, lines: list[str]) -> pathlib.Path:
        file = self.folder / name
        file.write_text('\n'.join(lines) + '\n')
        return file

    def start(self, *words, output: str = 'output', bus: str | None = None) -> subprocess.Popen:
        environment = dict(os.environ) | ({'DBUS_SYSTEM_BUS_ADDRESS': bus} if bus else {})
        with open(self.folder / output, 'ab') as file, open(self.folder / 'errors', 'ab') as errors:
            child = subprocess.Popen([str(word) for word in words], cwd=self.folder, env=environment, stdout=file, stderr=errors)
        self.callback(self.end, child)
        return child

    @staticmethod
    def end(child: subprocess.Popen) -> None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def await_text(self, name: str) -> str:
        deadline = time.monotonic() + 20
        while not (text := (self.folder / name).read_text()).endswith('\n'):
            if time.monotonic() > deadline:
                raise RuntimeError(f'nothing came: {(self.folder / "errors").read_text()}')
            time.sleep(0.02)
        return text.strip()

    def bus_process(self) -> int:
        """The process of the D-Bus daemon, which the simulator has started."""
        for file in pathlib.Path('/proc').glob('[0-9]*/stat'):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name, state_and_parent = file.read_text().rsplit(')', 1)
                if int(state_and_parent.split()[1]) == self.simulator.pid and 'dbus-daemon' in name:
                    return int(file.parent.name)
        raise RuntimeError('the simulator has no D-Bus daemon')

    def configuration(self, devices: int) -> pathlib.Path:
        lines = ['gateway: bench', f'bluetooth: {{bus: "{self.bus}"}}', f'history: {{path: "{self.disk or self.folder}/history.db"}}']
        publish = f', publish: {{batch: {self.batch}}}' if self.batch else ''
        lines += [f'mqtt: {{url: "mqtt://127.0.0.1:{self.port}"{publish}}}', 'devices:']
        lines += [self.device(device) for device in range(1, devices + 1)]
        return self.write('gattherd.yaml', lines)

    def device(self, number: int) -> str:
        """A device of the configuration."""
        notify = ', notify: socket' if self.sockets else ''
        return f'  - {{name: d{number}, address: "{address(number)}"{notify}}}'

    def start_ours(self) -> subprocess.Popen:
        return self.start(self.programs / 'gattherd', 'run', '--config', self.configuration(self.devices))

    def start_peer(self, words: list) -> subprocess.Popen:
        devices = [f'd{device}={address(device)}' for device in range(1, self.devices + 1)]
        return self.start(*words, self.port, 'peer.db', *devices, bus=self.bus)

    def subscribe(self) -> None:
        self.start('mosquitto_sub', '-p', self.port, '-t', self.topic, '-q', '1', '-F', '%U %r %t %p', output='received')
        time.sleep(0.2)

    def subscribe_silently(self) -> None:
        """Subscribes to all values without keeping them."""
        self.start('mosquitto_sub', '-p', self.port, '-t', 'gattherd/bench/#', '-q', '1', '-F', '%n', output='/dev/null')

    def await_all(self, child: subprocess.Popen, timeout: float = 60) -> float:
        """Waits until a value of every device was received. Returns the time."""
        deadline = time.time() + timeout
        seen: dict[str, float] = {}
        with open(self.folder / 'received') as file:
            while len(seen) < self.devices:
                if time.time() > deadline or child.poll() is not None:
                    raise RuntimeError(f'{len(seen)} of {self.devices} devices: {(self.folder / "errors").read_text()[-2000:]}')
                for line in file:
                    if match := self.message.match(line):
                        seen.setdefault(match[3], float(match[1]))
                time.sleep(0.02)
        return max(seen.values())

    def await_subscriptions(self, timeout: float = 60) -> None:
        """Waits until every device has a subscriber."""
        deadline = time.time() + timeout
        while self.truth.read_text().count('"event":"subscribe"') < self.devices:
            if time.time() > deadline:
                raise RuntimeError(f'not all subscribed: {(self.folder / "errors").read_text()[-2000:]}')
            time.sleep(0.1)

    def received(self, until: float = math.inf) -> dict[str, list[tuple[float, int]]]:
        """The receive times and values of each device, without duplicates if the readings have numbers.

        Under load more messages arrive while the file is read: those that came after `until` are left out.
        """
        messages, numbers = collections.defaultdict(list), set()
        with open(self.folder / 'received') as file:
            for line in file:
                if not (match := MESSAGE.match(line)) or match[2] != '0':
                    continue
                if float(match[1]) > until:
                    continue
                for number, value in READING.findall(line):
                    if number and number in numbers:
                        continue
                    numbers.add(number)
                    messages[match[3]].append((float(match[1]), int(value)))
        return messages

    def sent(self) -> dict[str, list[tuple[float, int]]]:
        """The notification times and values of each subscribed device."""
        names = {address(device): f'd{device}' for device in range(1, self.devices + 1)}
        notifications = collections.defaultdict(list)
        with open(self.truth) as file:
            for line in file:
                if '"notification"' in line and line.endswith('}\n'):
                    event = json.loads(line)
                    if event['delivered']:
                        notifications[names[event['dev']]].append((event['t'] / 1e6, 60 + event['n'] % CYCLE))
        return notifications


def latencies(sent: list[tuple[float, int]], received: list[tuple[float, int]], since: float, until: float) -> list[float | None]:
    """The latency of each notification of the span; `None` if it never arrived. Both lists are in order.

    Values repeat after `CYCLE` notifications. If exactly that many are lost, the next ones are taken for them, and values
    are missing only at the end. Notifications up to a second before the last received one are therefore checked as well.
    """
    answers, place = [None] * len(sent), 0
    for moment, value in received:
        window = range(place, min(place + CYCLE, len(sent)))
        found = next((index for index in window if sent[index][1] == value and sent[index][0] - EARLY <= moment), None)
        if found is not None:
            answers[found] = moment - sent[found][0]
            place = found + 1
    end = max(until, received[-1][0] - 1 if received else until)
    return [
        answer for (moment, _), answer in zip(sent, answers)
        if since <= moment < until or until <= moment < end and answer is None
    ]
