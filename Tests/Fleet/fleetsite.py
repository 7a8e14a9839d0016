"""A site for tests: simulated peripherals in one air, gateways, a broker, and a central database with PgBouncer."""
import contextlib
import os
import pathlib
import platform
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = ROOT / '.build/servers'
POSTGRES = SERVERS / 'usr/lib/postgresql/15/bin'
DATABASE = 'fleet'


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def until(condition, limit: float, what: str):
    """Waits for a true value and returns it."""
    end = time.monotonic() + limit
    while True:
        with contextlib.suppress(sqlite3.Error, subprocess.CalledProcessError, OSError, IndexError):
            if value := condition():
                return value
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)


class Process:
    """A program that can be killed and started again."""

    def __init__(self, words: list, log: pathlib.Path, *, user: str | None = None, env: dict | None = None):
        self.words, self.log, self.env = [str(word) for word in words], log, env
        if user and os.getuid() == 0:
            self.words = ['setpriv', f'--reuid={user}', '--regid=65534', '--clear-groups', *self.words]
        self.child = None

    def start(self):
        with open(self.log, 'ab') as log:
            self.child = subprocess.Popen(self.words, stdout=log, stderr=log, env={**os.environ, **(self.env or {})})

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def send(self, number: int):
        if self.is_running:
            self.child.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, limit: float = 30):
        if not self.is_running:
            return
        self.child.send_signal(number)
        self.child.wait(limit)


class Postgres(Process):
    """A server on a loopback port. The superuser needs no password."""

    def __init__(self, folder: pathlib.Path):
        self.port, self.folder, self.data = free_port(), folder, folder / 'data'
        # A file system of its own can be filled; without the right to mount one, its disk is that of the site.
        mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=400m,mode=755', 'fleet', folder], capture_output=True)
        self.ballast = None if mounted.returncode else folder / 'ballast'
        data = self.data
        template = SERVERS / f'postgres-15-{os.getuid()}'
        settings = {'listen_addresses': '127.0.0.1', 'port': self.port, 'unix_socket_directories': folder,
                    'shared_buffers': '32MB', 'jit': 'off', 'fsync': 'off', 'full_page_writes': 'off',
                    'max_wal_size': '128MB'}
        options = [word for key, value in settings.items() for word in ('-c', f'{key}={value}')]
        super().__init__([POSTGRES / 'postgres', '-D', data, *options], folder / 'log', user='nobody')
        if template.is_dir():
            subprocess.run(['cp', '-a', template, data], check=True)
        else:
            self.own(folder)
            initdb = Process([POSTGRES / 'initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8',
                              '--locale=C.UTF-8', '-N'], folder / 'log', user='nobody')
            initdb.start()
            initdb.child.wait()
        (data / 'pg_hba.conf').write_text('host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 '
                                          'scram-sha-256\nlocal all all trust\n')
        for path in (folder, data / 'pg_hba.conf'):
            self.own(path)

    def save(self):
        """Copies the database, which must be stopped."""
        shutil.rmtree(self.folder / 'saved', ignore_errors=True)
        subprocess.run(['cp', '-a', self.data, self.folder / 'saved'], check=True)

    def put_back(self):
        """Replaces the database, which must be stopped, by the copy."""
        shutil.rmtree(self.data)
        (self.folder / 'saved').rename(self.data)

    @staticmethod
    def own(path: pathlib.Path):
        if os.getuid() == 0:
            os.chown(path, pwd.getpwnam('nobody').pw_uid, 65534)

    def start(self):
        while not self.is_running:
            super().start()
            with contextlib.suppress(TimeoutError):
                until(lambda: not self.is_running or self.rows('SELECT 1', database='postgres'), 30, 'PostgreSQL')

    def rows(self, sql: str, database: str = DATABASE) -> list[list[str]]:
        words = [POSTGRES / 'psql', '-X', '-q', '-A', '-t', '-F', '\t', '-P', 'null=NULL', '-v', 'ON_ERROR_STOP=1',
                 '-h', '127.0.0.1', '-p', self.port, '-U', 'postgres', '-d', database,
                 '-c', 'SET default_transaction_read_only = off', '-c', sql]
        text = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout
        return [line.split('\t') for line in text.split('\n')[:-1]]


class PgBouncer(Process):
    def __init__(self, folder: pathlib.Path, server: Postgres, users: dict[str, str]):
        self.port = free_port()
        (folder / 'users').write_text(''.join(f'"{name}" "{password}"\n' for name, password in users.items()))
        (folder / 'settings').write_text(
            f'[databases]\n{DATABASE} = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n'
            f'listen_port = {self.port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {folder}/users\n'
            'pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\n')
        for path in (folder, folder / 'users', folder / 'settings'):
            Postgres.own(path)
        super().__init__([SERVERS / 'usr/sbin/pgbouncer', folder / 'settings'], folder / 'log', user='nobody',
                         env={'LD_LIBRARY_PATH': str(SERVERS / f'usr/lib/{platform.machine()}-linux-gnu')})


class Gateway(Process):
    def __init__(self, site: 'Site', name: str, bus: str, password: str, text: str, env: dict | None = None):
        self.name, self.password = name, password
        self.folder = site.folder / name
        self.folder.mkdir()
        (self.folder / 'password').write_text(password)
        self.history = self.folder / 'gattherd.db'
        self.configuration = self.folder / 'gattherd.yaml'
        self.configuration.write_text(
            f'gateway: {name}\nbluetooth: {{bus: "{bus}"}}\nhistory: {{path: {self.history}}}\n'
            f'mqtt: {{url: "mqtt://127.0.0.1:{site.broker_port}"}}\n'
            f'postgres: {{url: "postgresql://127.0.0.1:{site.port}/{DATABASE}", '
            f'password_file: {self.folder}/password}}\nfleet: {{leases: true}}\n'
            f'profiles: {{paths: [{site.programs}/libHeartRate.so, {site.programs}/libNumberService.so, '
            f'{ROOT}/Plugins/Standard]}}\n{text}')
        super().__init__([site.programs / 'gattherd', 'run', '--config', self.configuration], self.folder / 'log',
                         env=env)

    def rows(self, sql: str, path: pathlib.Path | None = None) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(f'file:{path or self.history}?mode=ro', uri=True, timeout=20)) as file:
            return file.execute(sql).fetchall()


class Site(contextlib.ExitStack):
    """Starts everything but the gateways, and ends all with it."""

    def __init__(self, programs: pathlib.Path, scenario: str, gateways: list[str], devices: str, *,
                 bouncer: bool = False, port=None, env=lambda name: None):
        """`port` makes the port that the gateways use, from the one that serves the database."""
        super().__init__()
        self.programs = programs
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='gattherd-fleet-'))
        self.folder.chmod(0o755)
        self.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.truth = self.folder / 'truth'
        self.start_broker()
        buses = self.start_peripherals(scenario, len(gateways))
        (self.folder / 'server').mkdir()
        self.server = Postgres(self.folder / 'server')
        if self.server.ballast:
            self.callback(subprocess.run, ['umount', '--lazy', self.folder / 'server'], capture_output=True)
        self.callback(lambda: self.server.stop(signal.SIGQUIT))
        self.server.start()
        self.server.rows(f'CREATE DATABASE {DATABASE}', database='postgres')
        self.url = f'postgresql://postgres@127.0.0.1:{self.server.port}/{DATABASE}'
        self.run('fleet', 'init', self.url)
        passwords = {name: self.run('fleet', 'add', self.url, name).split()[-1] for name in gateways}
        self.port, self.bouncer = self.server.port, None
        if bouncer:
            (self.folder / 'bouncer').mkdir()
            users = {f'gattherd_{name}': password for name, password in passwords.items()}
            self.bouncer = PgBouncer(self.folder / 'bouncer', self.server, users)
            self.callback(lambda: self.bouncer.stop(signal.SIGKILL))
            self.bouncer.start()
            self.port = self.bouncer.port
        if port:
            self.port = port(self.port)
        self.gateways = [Gateway(self, name, bus, passwords[name], devices, env(name))
                         for name, bus in zip(gateways, buses)]
        for gateway in self.gateways:
            self.callback(gateway.stop, signal.SIGKILL)

    def start_broker(self):
        self.broker_port = free_port()
        settings = self.folder / 'broker.conf'
        settings.write_text(f'listener {self.broker_port} 127.0.0.1\nallow_anonymous true\n')
        self.broker = Process(['mosquitto', '-c', settings], self.folder / 'broker.log')
        self.broker.start()
        self.callback(self.broker.stop, signal.SIGKILL)

    def start_peripherals(self, scenario: str, count: int) -> list[str]:
        (self.folder / 'site.yaml').write_text(scenario)
        output = self.folder / 'peripherals'
        self.peripherals = Process([self.programs / 'gattherd-sim', 'run', '--bus', 'private', '--truth', self.truth,
                                    self.folder / 'site.yaml'], output)
        self.peripherals.start()
        self.callback(self.peripherals.stop, signal.SIGKILL)
        lines = until(lambda: len(text := output.read_text().splitlines()) >= count and text, 20, 'the simulator')
        return [line.split()[-1] for line in lines]

    def run(self, *words: str) -> str:
        command = [str(self.programs / 'gattherd'), *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
