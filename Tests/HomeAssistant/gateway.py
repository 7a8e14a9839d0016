"""A gateway with simulated peripherals and a broker, whose parts end one by one."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import typing

from homeassistant import free_port, wait

SCENARIO = """\
peripherals:
  - name: strap
    kind: heart-rate
    address: 'C0:FF:EE:00:00:01'
    rate: 2
    rr: 2
    energy: true
    contact: yes
    battery: 97
    information: {manufacturer: Acme, model: HR-1, serial: '007', hardware: B, firmware: '1.0'}
  - {name: dial, kind: number-service, address: 'C0:FF:EE:00:00:10', value: 42}
  - {name: weather, kind: environmental, address: 'C0:FF:EE:00:00:20', rate: 1, battery: 64}
  - name: door
    kind: beacon
    address: 'C0:FF:EE:00:00:30'
    advertise:
      turn: 2s
      service_data: {fcd2: [400001015f15002d013a01, 400002015f15002d003a02]}
"""

DEVICES = {
    'strap': "{name: strap, address: 'C0:FF:EE:00:00:01', title: Chest strap, area: Gym}",
    'dial': "{name: dial, address: 'C0:FF:EE:00:00:10'}",
    'weather': "{name: weather, address: 'C0:FF:EE:00:00:20'}",
    'door': "{name: door, address: 'C0:FF:EE:00:00:30', profiles: [bthome]}",
}


class Gateway:
    """A daemon, its broker and its peripherals; a context manager that stops them."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, home_port: int, home_token: str):
        self.folder = folder
        self._home_port = home_port
        self.devices = dict(DEVICES)
        self.broker_port, self.http_port = free_port(), free_port()
        self._programs = programs
        (folder / 'scenario.yaml').write_text(SCENARIO)
        (folder / 'mosquitto.conf').write_text(f'listener {self.broker_port} 127.0.0.1\nallow_anonymous true\n')
        (folder / 'token').write_text('a-token-of-this-test')
        (folder / 'home-token').write_text(home_token)
        self._broker = self._run(['mosquitto', '-c', folder / 'mosquitto.conf'], 'mosquitto')
        with (folder / 'simulator').open('w') as errors:
            self._simulator = subprocess.Popen(
                [programs / 'gattherd-sim', 'run', '--bus', 'private', folder / 'scenario.yaml'],
                stdout=subprocess.PIPE, stderr=errors, text=True)
        self._bus = self._simulator.stdout.readline().split()[-1]
        self._write()
        self.start()

    def _run(self, command: list, name: str) -> subprocess.Popen:
        environment = os.environ | {'PATH': os.environ['PATH'] + ':/usr/sbin'}
        with (self.folder / name).open('a') as output:
            return subprocess.Popen(command, stdout=output, stderr=output, env=environment)

    def __enter__(self) -> 'Gateway':
        return self

    def __exit__(self, *_: object) -> None:
        for process in [self._daemon, self._simulator, self._broker]:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait()
        self._simulator.stdout.close()

    def _write(self) -> None:
        devices = '\n'.join(f'  - {device}' for device in self.devices.values())
        (self.folder / 'gattherd.yaml').write_text(f"""\
gateway: attic
bluetooth: {{bus: '{self._bus}'}}
history: {{path: history.db}}
mqtt:
  url: 'mqtt://127.0.0.1:{self.broker_port}'
  home_assistant: {{statistics: {{url: 'http://127.0.0.1:{self._home_port}', token_file: home-token}}}}
http: {{listen: '0.0.0.0:{self.http_port}', hosts: [attic.lan], token_file: token}}
alerts:
  - {{name: battery-low, battery_below: 70}}
devices:
{devices}
""")

    def start(self) -> None:
        self._daemon = self._run([self._programs / 'gattherd', 'run', '--config', self.folder / 'gattherd.yaml'], 'log')

    def command(self, *words: str, text: str = '') -> str:
        """Runs a command with the gateway's configuration and returns its output."""
        command = [self._programs / 'gattherd', *words, '--config', self.folder / 'gattherd.yaml']
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    def hours(self, device: str, metric: str, start: int, end: int) -> list[tuple[int, float, float, float]]:
        """The rows of `history_hours` of a time range: start in seconds, minimum, mean and maximum."""
        query = ('SELECT ts / 1000000, min, mean, max FROM history_hours '
                 'WHERE device = ? AND metric = ? AND ts >= ? AND ts < ? ORDER BY ts')
        with contextlib.closing(sqlite3.connect(self.folder / 'history.db')) as history:
            return list(history.execute(query, (device, metric, start * 1000000, end * 1000000)))

    def kill(self) -> None:
        """Kills the daemon, which cannot say goodbye."""
        self._daemon.kill()
        self._daemon.wait()

    def stop(self) -> None:
        self._daemon.terminate()
        self._daemon.wait()

    def reload(self, devices: dict[str, str]) -> None:
        self.devices = devices
        self._write()
        self._daemon.send_signal(signal.SIGHUP)

    def freeze(self) -> None:
        """Suspends the peripherals: values stay as they are."""
        self._simulator.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._simulator.send_signal(signal.SIGCONT)

    def retained(self, topic: str) -> dict[str, str]:
        """The retained messages by topic."""
        command = ['mosquitto_sub', '-p', str(self.broker_port), '-t', topic, '--retained-only', '-W', '1', '-F', '%t %p']
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        return dict(line.split(' ', 1) for line in lines)

    def reading(self, device: str, stream: str) -> dict[str, typing.Any]:
        """The newest published reading of a stream."""
        topic = f'gattherd/attic/{device}/{stream}'
        return json.loads(wait(lambda: self.retained(topic).get(topic), topic))
