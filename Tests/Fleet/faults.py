#!/usr/bin/env python3
"""Lets faults happen to a fleet at random moments, then compares the files of all gateways with the centre, row by row.

Kills gateways, PostgreSQL, its backends, PgBouncer and the broker; cuts connections after a random number of bytes; sets
clocks wrong by years; restores a gateway's history from a backup, or lets it begin anew; puts the centre back to an
earlier state, as an asynchronous standby that is promoted; fills the centre's disk, makes it read-only, and locks roles
out.
Each round has a seed, which determines its faults.
"""
import argparse
import collections
import contextlib
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from fleetsite import DATABASE, ROOT, Site, free_port, until

GATEWAYS = ['west', 'middle', 'east']
SCENARIO = '''timing: quick
air: {exponent: 2, sensitivity: -88, noise: 3}
gateways: [{name: west, at: [0, 0]}, {name: middle, at: [40, 0]}, {name: east, at: [80, 0]}]
peripherals:
  - {name: walker, kind: heart-rate, address: C0:FF:EE:00:00:01, rate: 20, format: u16,
     path: {0s: [0, 1], 10s: [0, 1], 15s: [40, 1], 20s: [40, 1], 25s: [80, 1], 35s: [80, 1], 60s: [0, 1]}}
  - {name: strap, kind: heart-rate, address: C0:FF:EE:00:00:02, rate: 40, rr: 2, at: [3, 0]}
  - {name: belt, kind: heart-rate, address: C0:FF:EE:00:00:03, rate: 40, at: [78, 0]}
  - name: tag
    kind: beacon
    address: C0:FF:EE:00:00:30
    at: [20, 0]
    advertise:
      rssi: -50
      turn: 1s
      manufacturer_data:
        0x0499:
          - 0510a44678c3d40004fffc040cac364200c8c0ffee000030
          - 0510ae463cc3d70004fffc040cac364200c9c0ffee000030
          - 0510c245d8c3d30004fffc040cac364200cac0ffee000030
'''
DEVICES = '''devices:
  - {name: walker, address: "C0:FF:EE:00:00:01"}
  - {name: strap, address: "C0:FF:EE:00:00:02"}
  - {name: belt, address: "C0:FF:EE:00:00:03"}
  - {name: tag, address: "C0:FF:EE:00:00:30", profiles: [ruuvitag]}
'''
READINGS = ('seq, ts, device, profile, stream, metric, {value}, unit, source, element, kind')
YEAR = 365 * 86_400


class Proxy:
    """Passes connections on, and cuts most of them after a random number of bytes while `cuts` is true."""

    def __init__(self, target: int, dice: random.Random):
        self.target, self.dice, self.cuts = target, dice, False
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket):
        budget = [self.dice.randrange(100, 60_000)] if self.cuts else [1 << 62]
        with contextlib.suppress(OSError), client:
            with socket.create_connection(('127.0.0.1', self.target)) as server:
                pumps = [threading.Thread(target=self.pump, args=(*ends, budget))
                         for ends in ((client, server), (server, client))]
                for pump in pumps:
                    pump.start()
                for pump in pumps:
                    pump.join()

    @staticmethod
    def pump(source: socket.socket, target: socket.socket, budget: list[int]):
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                allowed = min(budget[0], len(data))
                budget[0] -= allowed
                target.sendall(data[:allowed])
                if not budget[0]:
                    break
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Clock:
    """A wall clock of one gateway that can be wrong."""

    def __init__(self, path: pathlib.Path):
        path.write_bytes(struct.pack('qq', 0, 1))
        self.path = path
        with open(path, 'r+b') as file:
            self.map = mmap.mmap(file.fileno(), 16)

    def set(self, seconds: int, is_synchronised: bool):
        self.map[8:16] = struct.pack('q', is_synchronised)
        self.map[0:8] = struct.pack('q', seconds)


class Round:
    def __init__(self, options, seed: int):
        self.seed, self.options, self.dice = seed, options, random.Random(seed)
        self.folder = pathlib.Path(options.folder) / f'round-{seed}'
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.clocks = {name: Clock(self.folder / f'clock-{name}') for name in GATEWAYS}
        self.faults, self.replaced = collections.Counter(), collections.defaultdict(list)
        self.has_clock_faults = self.dice.random() < 0.5

    def environment(self, name: str) -> dict:
        return {'LD_PRELOAD': self.options.clock, 'CLOCK_OFFSET': str(self.clocks[name].path)}

    def port(self, target: int) -> int:
        self.proxy = Proxy(target, random.Random(self.seed + 1))
        return self.proxy.port

    def run(self) -> list[str]:
        with Site(self.options.programs, SCENARIO, GATEWAYS, DEVICES, bouncer=True, port=self.port,
                  env=self.environment) as site:
            self.site = site
            for gateway in site.gateways:
                gateway.start()
            until(lambda: site.server.rows('SELECT 1 FROM gattherd.history LIMIT 1'), 60, 'the first reading')
            end = time.monotonic() + self.options.seconds
            while time.monotonic() < end:
                time.sleep(self.dice.expovariate(1 / 1.5))
                self.cause_fault()
            self.repair()
            problems = self.settle()
            if not problems:
                problems = self.compare()
            if problems:
                self.dump()
                with contextlib.suppress(shutil.Error):
                    shutil.copytree(site.folder, self.folder / 'site', ignore=shutil.ignore_patterns('data', '*.sock'))
            return problems

    # MARK: faults

    def cause_fault(self):
        faults = [self.kill_gateway, self.kill_gateway, self.stop_gateway, self.kill_server, self.restart_server,
                  self.kill_bouncer, self.cut, self.end_backends, self.read_only, self.lock_role, self.freeze,
                  self.restore_backup, self.statement_timeout, self.lock_table, self.kill_broker, self.kill_backends,
                  self.lose_transactions, self.begin_history]
        if self.site.server.ballast:
            faults.append(self.fill_disk)
        if self.has_clock_faults:
            faults += [self.wrong_clock, self.wrong_clock]
        fault = self.dice.choice(faults)
        self.faults[fault.__name__] += 1
        if self.options.verbose:
            print(f'{time.monotonic():.1f} {fault.__name__}', flush=True)
        fault()

    def pause(self, most: float):
        time.sleep(self.dice.uniform(0, most))

    def kill_gateway(self):
        gateway = self.dice.choice(self.site.gateways)
        gateway.stop(signal.SIGKILL)
        self.pause(1)
        gateway.start()

    def stop_gateway(self):
        gateway = self.dice.choice(self.site.gateways)
        gateway.stop()
        self.pause(1)
        gateway.start()

    def kill_server(self):
        self.site.server.stop(signal.SIGKILL)
        self.pause(2)
        self.site.server.start()

    def restart_server(self):
        self.site.server.stop(signal.SIGINT)
        self.pause(2)
        self.site.server.start()

    def kill_bouncer(self):
        self.site.bouncer.stop(signal.SIGKILL)
        self.pause(2)
        self.site.bouncer.start()

    def kill_broker(self):
        self.site.broker.stop(signal.SIGKILL)
        self.pause(2)
        self.site.broker.start()

    def cut(self):
        self.proxy.cuts = True
        self.site.bouncer.stop(signal.SIGKILL)
        self.site.bouncer.start()
        self.pause(6)
        self.proxy.cuts = False

    def sql(self, text: str):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.site.server.rows(text)

    def end_backends(self):
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'gattherd%'")

    def kill_backends(self):
        pids = []
        with contextlib.suppress(subprocess.CalledProcessError):
            pids = self.site.server.rows("SELECT pid FROM pg_stat_activity WHERE usename LIKE 'gattherd%'")
        for (pid,) in pids[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.pause(2)

    def lose_transactions(self):
        server = self.site.server
        server.stop(signal.SIGINT)
        server.save()
        server.start()
        self.pause(6)
        server.stop(signal.SIGKILL)
        server.put_back()
        server.start()

    def fill_disk(self):
        server = self.site.server
        with contextlib.suppress(OSError), open(server.ballast, 'wb') as file:
            while True:
                file.write(bytes(1 << 20))
        self.pause(6)
        server.ballast.unlink()
        if not server.is_running:
            server.start()

    def begin_history(self):
        gateway = self.dice.choice(self.site.gateways)
        gateway.stop(self.dice.choice([signal.SIGTERM, signal.SIGKILL]))
        aside = f'gattherd.db.aside-{sum(self.faults.values())}'
        for suffix in ('', '-wal', '-shm'):
            with contextlib.suppress(FileNotFoundError):
                (gateway.folder / f'gattherd.db{suffix}').rename(gateway.folder / f'{aside}{suffix}')
        self.replaced[gateway.name].append(aside)
        gateway.start()

    def read_only(self):
        self.sql(f'ALTER DATABASE {DATABASE} SET default_transaction_read_only = on')
        self.end_backends()
        self.pause(3)
        self.sql(f'ALTER DATABASE {DATABASE} RESET default_transaction_read_only')
        self.end_backends()

    def lock_role(self):
        role = f'gattherd_{self.dice.choice(GATEWAYS)}'
        self.sql(f'ALTER ROLE {role} NOLOGIN; REVOKE EXECUTE ON FUNCTION gattherd.append FROM {role}')
        self.end_backends()
        self.pause(3)
        self.sql(f'ALTER ROLE {role} LOGIN; GRANT EXECUTE ON FUNCTION gattherd.append TO {role}')

    def statement_timeout(self):
        self.sql(f"ALTER DATABASE {DATABASE} SET statement_timeout = '{self.dice.randrange(1, 20)}ms'")
        self.end_backends()
        self.pause(3)
        self.sql(f'ALTER DATABASE {DATABASE} RESET statement_timeout')
        self.end_backends()

    def lock_table(self):
        table = self.dice.choice(['journal', 'lease', 'sample', 'event', 'reception', 'minute'])
        self.sql(f"BEGIN; LOCK TABLE gattherd.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({self.dice.uniform(0, 4):.1f});"
                 'COMMIT')

    def freeze(self):
        process = self.dice.choice([self.site.server, self.site.bouncer, *self.site.gateways])
        process.send(signal.SIGSTOP)
        self.pause(5)
        process.send(signal.SIGCONT)

    def restore_backup(self):
        gateway = self.dice.choice(self.site.gateways)
        backup = self.folder / f'backup-{sum(self.faults.values())}.db'
        command = [self.options.programs / 'gattherd', 'db']
        made = subprocess.run([*command, 'backup', backup, '--config', gateway.configuration], capture_output=True,
                              env={**os.environ, **gateway.env})
        if made.returncode:
            return
        self.pause(2)
        gateway.stop(self.dice.choice([signal.SIGTERM, signal.SIGKILL]))
        aside = self.folder / f'{gateway.name}-{sum(self.faults.values())}.db'
        # The restore replays what the WAL has, and keeps the replaced file.
        done = subprocess.run([*command, 'restore', backup, '--config', gateway.configuration], capture_output=True,
                              text=True, env={**os.environ, **gateway.env})
        if done.returncode:
            print('restore:', done.stderr, flush=True)
        for path in gateway.folder.iterdir():
            if path.name.startswith('gattherd.db.replaced') and not path.name.endswith(('-wal', '-shm', '.tmp')):
                if path.name not in self.replaced[gateway.name]:
                    self.replaced[gateway.name].append(path.name)
        gateway.start()

    def wrong_clock(self):
        name = self.dice.choice(GATEWAYS)
        offset = self.dice.choice([-40 * YEAR, -3 * YEAR, 5 * YEAR, -7200, 300, -1, 2])
        self.clocks[name].set(offset, False)
        if self.dice.random() < 0.5:
            gateway = self.site.gateways[GATEWAYS.index(name)]
            gateway.stop(signal.SIGKILL)
            gateway.start()
        self.pause(4)
        self.clocks[name].set(0, True)

    def repair(self):
        site = self.site
        self.proxy.cuts = False
        for clock in self.clocks.values():
            clock.set(0, True)
        for process in (site.server, site.bouncer, site.broker, *site.gateways):
            if not process.is_running:
                process.start()

    # MARK: the comparison

    def settle(self) -> list[str]:
        """Stops the gateways, and lets each deliver all that it has."""
        # Peripherals that are gone: nothing new but events comes.
        time.sleep(15)
        self.site.peripherals.stop(signal.SIGKILL)
        time.sleep(3)
        try:
            until(self.is_delivered, 120, 'delivery')
        except TimeoutError:
            return [f'not delivered: {self.lags()}']
        return []

    def lags(self) -> dict:
        cursors = dict(self.site.server.rows('SELECT gateway, cursor FROM gattherd.gateways'))
        return {gateway.name: (gateway.rows("SELECT max(seq) FROM history")[0][0], cursors.get(gateway.name))
                for gateway in self.site.gateways}

    def is_delivered(self) -> bool:
        cursors = {row[0]: int(row[1]) for row in self.site.server.rows('SELECT gateway, cursor FROM gattherd.gateways')}
        heads = {}
        for gateway in self.site.gateways:
            text = subprocess.run([self.options.programs / 'gattherd', 'status', '--json', '--config',
                                   gateway.configuration], capture_output=True, text=True, env=os.environ).stdout
            status = json.loads(text)
            output = next(output for output in status['outputs'] if output['name'] == 'postgres')
            heads[gateway.name] = output['backlog'] == 0 and output['state'] == 'connected'
        count = self.site.server.rows('SELECT count(*) FROM gattherd.correction WHERE NOT done')[0][0] \
            if self.has_column('correction', 'done') else '0'
        return all(heads.values()) and len(cursors) == 3 and count == '0'

    def has_column(self, table: str, column: str) -> bool:
        return bool(self.site.server.rows("SELECT 1 FROM information_schema.columns WHERE table_schema = 'gattherd' "
                                          f"AND table_name = '{table}' AND column_name = '{column}'"))

    def compare(self) -> list[str]:
        problems = []
        gaps = self.site.server.rows('SELECT gateway, after, through, reason FROM gattherd.gaps')
        for gateway in self.site.gateways:
            stored = set()
            for path in [gateway.history, *(gateway.folder / name for name in self.replaced[gateway.name])]:
                with contextlib.suppress(Exception):
                    stored |= {self.plain(row) for row in
                               gateway.rows('SELECT ' + READINGS.format(value='value') + ' FROM history', path)}
            found = [self.plain(row) for row in self.site.server.rows(
                'SELECT ' + READINGS.format(value='coalesce(whole::text, value::text, label)')
                + f" FROM gattherd.gateway_history WHERE gateway = '{gateway.name}'")]
            problems += self.differences(gateway.name, stored, found, [gap[1:] for gap in gaps if gap[0] == gateway.name])
        twice = self.site.server.rows('SELECT gateway, device, kind, ts, detail, count(*) FROM gattherd.events '
                                      'GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1')
        if twice:
            problems.append(f'{len(twice)} events are there twice: {twice[0]}')
        minutes = self.site.server.rows('SELECT sum(n) FROM gattherd.history_minutes')[0][0]
        rows = self.site.server.rows("SELECT count(*) FROM gattherd.history WHERE kind <> 'state' AND value IS NOT NULL")
        if minutes != rows[0][0]:
            problems.append(f'minutes count {minutes} values, history has {rows[0][0]}')
        epochs = self.site.server.rows("SELECT device, detail::json->>'epoch', count(DISTINCT detail::json->>'state') "
                                       "FROM gattherd.events WHERE kind = 'lease' AND detail::json->>'state' LIKE "
                                       "'owned%' GROUP BY 1, 2 HAVING count(DISTINCT detail::json->>'state') > 1")
        if epochs:
            problems.append(f'epochs with two owners: {epochs}')
        return problems

    def differences(self, name: str, stored: set, found: list, gaps: list) -> list[str]:
        problems, unique = [], set(found)
        if len(unique) != len(found):
            twice = [row for row, count in collections.Counter(found).items() if count > 1]
            problems.append(f'{name}: {len(twice)} rows are there twice: {twice[0]}')
        if self.replaced[name]:
            # A correction after a restore changes the times in one of the files only.
            stored, unique = ({row[:1] + row[2:] for row in rows} for rows in (stored, unique))
        missing = {row for row in stored - unique if not any(int(after) < row[0] <= int(through) for after, through, _ in gaps)}
        extra = unique - stored
        print(f'  {name}: {len(stored)} rows in files, {len(found)} at the centre, {len(gaps)} gaps', flush=True)
        if missing:
            problems.append(f'{name}: {len(missing)} rows are missing at the centre: {sorted(missing, key=str)[:3]}')
        if extra:
            problems.append(f'{name}: {len(extra)} rows are at the centre only: {sorted(extra, key=str)[:3]}')
        return problems

    @staticmethod
    def plain(row) -> tuple:
        def text(value):
            if value is None:
                return 'NULL'
            if isinstance(value, float) and value.is_integer():
                return str(int(value))
            return str(value)
        values = [text(value) for value in row]
        return (int(values[0]), *values[1:])

    def dump(self):
        with open(self.folder / 'centre.sql', 'wb') as file:
            subprocess.run([ROOT / '.build/servers/usr/lib/postgresql/15/bin/pg_dump', '-h', '127.0.0.1', '-p',
                            str(self.site.server.port), '-U', 'postgres', DATABASE], stdout=file, check=False)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('--programs', type=lambda text: pathlib.Path(text).resolve(), default=ROOT / '.build/debug')
    arguments.add_argument('--seconds', type=float, default=90, help='of each round')
    arguments.add_argument('--minutes', type=float, default=30, help='after which no round begins')
    arguments.add_argument('--seed', type=int, default=1, help='of the first round')
    arguments.add_argument('--folder', default='/tmp/gattherd-faults', help='for the remains of failed rounds')
    arguments.add_argument('--verbose', action='store_true')
    options = arguments.parse_args()
    pathlib.Path(options.folder).mkdir(exist_ok=True)
    options.clock = f'{options.folder}/clock.so'
    source = pathlib.Path(__file__).parent / 'clock.c'
    subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-o', options.clock, source, '-ldl'], check=True)
    end, seed, failed = time.monotonic() + options.minutes * 60, options.seed, 0
    while time.monotonic() < end:
        current = Round(options, seed)
        try:
            problems = current.run()
        except Exception as error:  # noqa: BLE001
            problems = [f'{type(error).__name__}: {error}']
        faults = ', '.join(f'{name} {count}' for name, count in sorted(current.faults.items()))
        print(f'seed {seed}: {"FAILED" if problems else "equal"}; {faults}', flush=True)
        for problem in problems:
            print(f'  {problem}', flush=True)
        failed += bool(problems)
        if not problems:
            shutil.rmtree(current.folder, ignore_errors=True)
        seed += 1
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
