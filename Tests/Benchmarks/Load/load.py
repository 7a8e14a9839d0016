"""Measures the cost of a gateway under load and that of its peers in the same run; `make bench` runs it.

    load.py PROGRAMS [--peer PYTHON] [--plain PROGRAM] [--folder PATH] [--only PARTS] [--page FILE] [--quick]

PROGRAMS is the folder of gattherd and gattherd-sim. PYTHON is an interpreter with the packages of peers/requirements.txt, PROGRAM
the built peers/plain.c. Each part replaces its section of the page FILE.
It asserts nothing: absolute figures hold for one machine, and only ratios can be compared with other machines.
"""
import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys
import time

import report
from report import Table
from rig import Meter, Rig, latencies, memory
from sensors import RATE, SensorRig, steps
from stall import Disk, stopped

PEERS = pathlib.Path(__file__).resolve().parent.parent / 'peers'
TOTALS = [5_000, 10_000, 20_000, 40_000]
# The methods of Bench that measure, which are sections of the page.
PARTS = ['dense', 'batch', 'sparse', 'idle', 'ready', 'storm', 'stalls', 'growth', 'rates', 'sustained', 'advertisements']


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.programs = pathlib.Path(options.programs).resolve()
        python = [pathlib.Path(options.peer).absolute(), '-B', PEERS / 'collector.py'] if options.peer else []
        plain = [pathlib.Path(options.plain).resolve()] if options.plain else []
        peers = {'Python, signals': python, 'Python, sockets': python and [*python, '--socket'], 'C, signals': plain}
        self.peers = {name: words for name, words in peers.items() if words}
        self.collectors = ['gattherd', 'gattherd, sockets', *self.peers]
        self.by_signals = [name for name in self.collectors if 'sockets' not in name]

    def rig(self, devices: int, rate: float, **rest) -> Rig:
        return Rig(self.programs, self.options.folder, devices, rate, **rest)

    def collect(self, rig: Rig, name: str) -> subprocess.Popen:
        return rig.start_peer(self.peers[name]) if name in self.peers else rig.start_ours()

    def load(self, name: str, devices: int, rate: float, span: float) -> dict[str, float]:
        """CPU, latency and memory at a load. Readings that arrive later than two seconds after the span count as missing."""
        say(f'{name}: {devices} devices, {rate:g}/s each')
        with self.rig(devices, rate, sockets='sockets' in name) as rig:
            rig.subscribe()
            began = time.time()
            child = self.collect(rig, name)
            ready = rig.await_all(child) - began
            time.sleep(2)
            since, meter = time.time(), Meter(child.pid)
            time.sleep(span)
            until, (cpu, _) = time.time(), meter.read()
            sizes = memory(child.pid)
            time.sleep(2)
            received, sent = rig.received(time.time()), rig.sent()
        count, notified = within(received, since, until), within(sent, since, until)
        delays = [delay for device, values in sent.items() for delay in latencies(values, received[device], since, until)]
        arrived = sorted(delay for delay in delays if delay is not None)
        return {
            'cpu': cpu / 1000 / max(1, count), 'rate': notified / (until - since), 'ready': ready * 1000,
            'p50': arrived[len(arrived) // 2] * 1000 if arrived else None, 'p99': arrived[len(arrived) * 99 // 100] * 1000 if arrived else None,
            'lost': len(delays) - len(arrived), 'resident': sizes['VmRSS'], 'private': sizes['RssAnon'],
        }

    def dense(self) -> list[Table]:
        """The cost and latency of many notifications: medians of three runs."""
        return [self.compared(64, 50, 1 if self.options.quick else 3, 5)]

    def batch(self) -> list[Table]:
        """The cost of daemon, bus and broker with single messages and with batches."""
        return [self.batches('signals', sockets=False), self.batches('sockets', sockets=True)]

    def batches(self, way: str, *, sockets: bool) -> Table:
        """The costs for notifications that arrive in one way: medians of three runs."""
        batches = {'single messages': None, 'batches of 100 ms': '100ms', 'batches of 500 ms': '500ms'}
        results = {name: [] for name in batches}
        for _ in range(1 if self.options.quick else 3):
            for name, batch in batches.items():
                results[name].append(self.system(f'{way}, {name}', batch, 5, sockets=sockets))
        columns = {'daemon': 'µs', 'bus': 'µs', 'broker': 'µs', 'together': 'µs', 'missing': ''}
        rows = {
            name: [statistics.median(run[column] for run in found) for column in list(columns)[:-1]]
            + [sum(run['missing'] for run in found)] for name, found in results.items()
        }
        title = f'CPU per notification of 64 devices at 50/s, by {way}'
        return Table(title, 'publishing', columns, rows, is_comparison=True)

    def system(self, name: str, batch: str | None, span: float, *, sockets: bool) -> dict[str, float]:
        """The CPU time of the daemon, the bus and the broker for each notification."""
        say(f'gattherd: 64 devices, 50/s each, {name}')
        with self.rig(64, 50, batch=batch, sockets=sockets) as rig:
            rig.subscribe()
            child = self.collect(rig, 'gattherd')
            rig.await_all(child)
            time.sleep(2)
            meters = {'daemon': Meter(child.pid), 'bus': Meter(rig.bus_process()), 'broker': Meter(rig.broker.pid)}
            since = time.time()
            time.sleep(span)
            until, used = time.time(), {process: meter.read()[0] for process, meter in meters.items()}
            time.sleep(2)
            received, sent = rig.received(time.time()), rig.sent()
        delays = [delay for device, values in sent.items() for delay in latencies(values, received[device], since, until)]
        costs = {process: cpu / 1000 / max(1, len(delays)) for process, cpu in used.items()}
        return costs | {'together': sum(costs.values()), 'missing': delays.count(None)}

    def sparse(self) -> list[Table]:
        """The cost and latency of few notifications."""
        return [self.compared(16, 10, 1, 10)]

    def compared(self, devices: int, rate: float, runs: int, span: float) -> Table:
        results = {name: [] for name in self.collectors}
        for _ in range(runs):
            for name in self.collectors:
                results[name].append(self.load(name, devices, rate, span))
        columns = {
            'CPU per notification': 'µs', 'p50': 'ms', 'p99': 'ms', 'resident': 'MB', 'private': 'MB', 'missing': '',
        }
        rows = {
            name: [statistics.median(run[key] for run in found) for key in ('cpu', 'p50', 'p99', 'resident', 'private')]
            + [sum(run['lost'] for run in found)] for name, found in results.items()
        }
        return Table(f'{devices} devices at {rate}/s', 'collector', columns, rows, is_comparison=True)

    def rates(self) -> list[Table]:
        """The cost from one notification per second upwards."""
        rows = {}
        for devices, rate in [(1, 1), (1, 10), (10, 10), (20, 50), (64, 78.125), (64, 312.5)]:
            span = 4 if self.options.quick or devices * rate > 100 else 20
            run = self.load('gattherd', devices, rate, span)
            share = run['rate'] * run['cpu'] / 1e4
            rows[f'{devices * rate:g}'] = [share, *(run[key] for key in ('cpu', 'p50', 'p99', 'resident'))]
        columns = {'CPU': '% of a core', 'CPU per notification': 'µs', 'p50': 'ms', 'p99': 'ms', 'resident': 'MB'}
        return [Table('By rate', 'notifications per second', columns, rows)]

    def sustained(self) -> list[Table]:
        """Increasing rates of 64 devices, until a reading is missing."""
        steps, highest = {}, {}
        for name in self.collectors:
            highest[name] = [0]
            for total in TOTALS[:2] if self.options.quick else TOTALS:
                try:
                    run = self.load(name, 64, total / 64, 4)
                except RuntimeError:
                    say(f'{name}: not all devices are ready at {total} per second')
                    break
                is_sustained = run['lost'] == 0 and run['p99'] is not None and run['p99'] < 1000
                steps[f'{name}, {total}/s ordered'] = [run['rate'], run['cpu'], run['p99'], run['lost']]
                if not is_sustained:
                    break
                highest[name] = [run['rate']]
        columns = {'rate': 'per second', 'CPU per notification': 'µs', 'p99': 'ms', 'missing': ''}
        return [
            Table('Highest sustained rate', 'collector', {'rate': 'per second'}, highest, is_comparison=True),
            Table('Steps', 'collector', columns, steps),
        ]

    def advertisements(self) -> list[Table]:
        """The cost of sensors that only advertise, with a new value in every tenth advertisement and in each."""
        rows = {}
        for repeats, news in [(10, 'every tenth'), (1, 'each')]:
            for count in (500,) if self.options.quick else (500, 1000, 2000):
                say(f'gattherd: {count} sensors, {RATE} advertisements/s each, {news} with a new value')
                rows[f'{count * RATE}/s ordered, {news} with a new value'] = self.sensors(count, repeats, 10)
        columns = {
            'processed': 'per second', 'readings': 'per second', 'CPU per advertisement': 'µs', 'resident': 'MB',
            'private': 'MB', 'missing': '',
        }
        return [Table('Sensors that only advertise', 'advertisements', columns, rows)]

    def sensors(self, count: int, repeats: int, span: float) -> list[float]:
        """Rates, cost, memory and lost readings.

        The counters in the readings tell how many advertisements were processed. A gap of them is a lost reading.
        """
        with SensorRig(self.programs, self.options.folder, count, repeats) as rig:
            rig.subscribe()
            child = self.collect(rig, 'gattherd')
            rig.await_all(child)
            time.sleep(3)
            since, meter = time.time(), Meter(child.pid)
            time.sleep(span)
            until, (cpu, _) = time.time(), meter.read()
            sizes = memory(child.pid)
            time.sleep(2)
            counts = rig.counts()
        measured = [[reading for reading in readings if since <= reading[0] < until] for readings in counts.values()]
        rate = sum(sum(steps(few)) * repeats / (few[-1][0] - few[0][0]) for few in measured if len(few) > 1)
        missing = sum(step - 1 for few in measured for step in steps(few))
        readings = sum(len(few) for few in measured) / (until - since)
        return [rate, readings, cpu / 1000 / max(1, rate * (until - since)), sizes['VmRSS'], sizes['RssAnon'], missing]

    def idle(self) -> list[Table]:
        """The cost of connected devices without notifications."""
        rows, span = {}, 5 if self.options.quick else 20
        for name in self.by_signals:
            say(f'{name}: 64 silent devices')
            with self.rig(64, 0) as rig:
                child = self.collect(rig, name)
                rig.await_subscriptions()
                time.sleep(12)
                meter = Meter(child.pid)
                time.sleep(span)
                cpu, wakeups = meter.read()
                rows[name] = [cpu / 1e7 / span, wakeups / span, memory(child.pid)['VmRSS']]
        columns = {'CPU': '% of a core', 'wake-ups': 'per second', 'resident': 'MB'}
        return [Table('64 connected, silent devices', 'collector', columns, rows, is_comparison=True)]

    def ready(self) -> list[Table]:
        """The time from the program's start to the first value of a known device."""
        rows = {
            name: [self.load(name, devices, 50, 1)['ready'] for devices in (1, 64)] for name in self.by_signals[:2]
        }
        columns = {'1 device': 'ms', '64 devices': 'ms'}
        return [Table('Start to a value of each device', 'collector', columns, rows, is_comparison=True)]

    def storm(self) -> list[Table]:
        """The time from the program's start to a value of each of 64 devices. Eight first connects fail."""
        minimum, rows = (64 + 8) * 0.2, {}
        for name in self.by_signals[:2]:
            say(f'{name}: 64 devices whose connects take 200 ms, 8 of them fail once')
            with self.rig(64, 10, connect='200ms', failing=8) as rig:
                rig.subscribe()
                began = time.time()
                ready = rig.await_all(self.collect(rig, name), 120) - began
                rows[name] = [ready, ready / minimum]
        columns = {'all devices ready': 's', 'multiple of the minimum': ''}
        return [Table('64 connects of 200 ms, 8 fail once', 'collector', columns, rows)]

    def stalls(self) -> list[Table]:
        """A stall of the collector, the broker or the disk at 64 x 50/s."""
        rows = {}
        for what, span in [('collector', 10), ('broker', 60), ('disk', 60)]:
            span = 3 if self.options.quick else span
            say(f'gattherd: the {what} stops for {span} s')
            try:
                rows[f'{what}, {span} s'] = self.stall(what, span)
            except OSError as error:
                say(f'gattherd: the {what} cannot be stopped here: {error}')
        columns = {'missing': '', 'before': 'MB', 'during': 'MB', 'after': 'MB'}
        return [Table('Stalls with 64 devices at 50/s', 'stalled', columns, rows)]

    def stall(self, what: str, span: float) -> list[float]:
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(Disk(self.options.folder)) if what == 'disk' else None
            rig = stack.enter_context(self.rig(64, 50, disk=disk and disk.folder))
            rig.subscribe()
            child = self.collect(rig, 'gattherd')
            rig.await_all(child)
            time.sleep(2)
            since, sizes = time.time(), [memory(child.pid)['VmRSS']]
            with disk.frozen() if disk else stopped(child if what == 'collector' else rig.broker):
                time.sleep(span)
                sizes.append(memory(child.pid)['VmRSS'])
            until = time.time()
            # The backlog is delivered at twice the rate of new readings.
            time.sleep(1.2 * span)
            sizes.append(memory(child.pid)['VmRSS'])
            received, sent = rig.received(), rig.sent()
        missing = sum(
            delay is None for device, values in sent.items()
            for delay in latencies(values, received[device], since, until)
        )
        return [missing, *sizes]

    def growth(self) -> list[Table]:
        """The cost of devices that are configured but out of range."""
        rows = {}
        for devices in (10, 100, 1000):
            say(f'gattherd: {devices} configured devices')
            with self.rig(1, 1) as rig:
                file = rig.configuration(devices)
                check = min(self.timed('check', file) or 0 for _ in range(3))
                began = time.monotonic()
                child = rig.start(self.programs / 'gattherd', 'run', '--config', file)
                while self.timed('status', file) is None and child.poll() is None:
                    time.sleep(0.01)
                start = (time.monotonic() - began) * 1000
                time.sleep(2)
                status = min(self.timed('status', file) or 0 for _ in range(3))
                rows[str(devices)] = [check, start, status, memory(child.pid)['VmRSS']]
        columns = {
            '`gattherd check`': 'ms', 'start to an answering daemon': 'ms', '`gattherd status`': 'ms', 'resident': 'MB',
        }
        return [Table('By number of configured devices', 'devices', columns, rows)]

    def timed(self, command: str, file: pathlib.Path) -> float | None:
        """The duration of a command in milliseconds, `None` if it failed."""
        began = time.monotonic()
        words = [self.programs / 'gattherd', command, *(['--config'] if command == 'status' else []), file]
        if subprocess.run(words, capture_output=True).returncode != 0:
            return None
        return (time.monotonic() - began) * 1000


def within(events: dict[str, list[tuple[float, int]]], since: float, until: float) -> int:
    """The number of events of all devices in a span."""
    return sum(since <= moment < until for values in events.values() for moment, _ in values)


def say(text: str) -> None:
    print(f'… {text}', file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs')
    parser.add_argument('--peer')
    parser.add_argument('--plain')
    parser.add_argument('--folder', default='/var/tmp')
    parser.add_argument('--only', help=f'parts, with commas: {", ".join(PARTS)}')
    parser.add_argument('--page', type=pathlib.Path, help='the page whose sections are written')
    parser.add_argument('--quick', action='store_true', help='less of everything, to try the benchmark itself; writes no page')
    options = parser.parse_args()
    parts = options.only.split(',') if options.only else PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f'there is no part {", ".join(sorted(unknown))}')
    bench = Bench(options)
    if not options.peer:
        say('there is no Python peer: its packages could not be installed')
    for part in parts:
        tables = getattr(bench, part)()
        for table in tables:
            table.print()
        if options.page and not options.quick:
            report.write(options.page, part, tables)


if __name__ == '__main__':
    main()
