"""A Home Assistant without a browser, connected to a broker."""
import base64
import hashlib
import hmac
import json
import pathlib
import socket
import subprocess
import time
import typing
import urllib.error
import urllib.request

NOW = '2026-01-01T00:00:00.000000+00:00'
KEY = '0' * 64
TOKEN = 'a' * 32

# Sends one request by WebSocket and prints the result; executed by Home Assistant's Python.
ASK = """\
import asyncio, json, sys
import aiohttp

async def ask(url, token, request):
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        await socket.receive_json()
        await socket.send_json({'type': 'auth', 'access_token': token})
        await socket.receive_json()
        await socket.send_json({'id': 1} | json.loads(request))
        print(json.dumps(await socket.receive_json()))

asyncio.run(ask(*sys.argv[1:]))
"""

CONFIGURATION = """\
homeassistant: {{name: Test, latitude: 52, longitude: 13, elevation: 34, unit_system: metric, time_zone: UTC}}
http: {{server_host: 127.0.0.1, server_port: {port}}}
api:
config:
history:
recorder: {{commit_interval: 0}}
logger: {{default: warning}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def rfc3339(seconds: int) -> str:
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds))


def wait(probe: typing.Callable[[], typing.Any], what: str, seconds: float = 60) -> typing.Any:
    """Returns the first true value of `probe`."""
    end = time.monotonic() + seconds
    while not (value := probe()):
        assert time.monotonic() < end, f'{what}: not within {seconds} s'
        time.sleep(0.1)
    return value


class HomeAssistant:
    """A running Home Assistant; a context manager that stops it."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, broker: int, port: int):
        self.folder = folder
        self.port = port
        self._program = program
        (folder / '.storage').mkdir(parents=True)
        (folder / 'configuration.yaml').write_text(CONFIGURATION.format(port=self.port))
        self._store('core.config_entries', 5, {'entries': [self._entry(broker)]})
        self._store('auth', 1, self._users())
        self._process = self._start()

    def __enter__(self) -> 'HomeAssistant':
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def restart(self) -> None:
        self.stop()
        self._process = self._start()

    def _start(self) -> subprocess.Popen:
        command = [self._program, '-c', self.folder, '--skip-pip']
        with (self.folder / 'output').open('a') as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        wait(lambda: process.poll() is not None or self._is_running(), 'the start of Home Assistant', 120)
        assert process.poll() is None, (self.folder / 'output').read_text()
        return process

    def _is_running(self) -> bool:
        try:
            return self.get('config')['state'] == 'RUNNING'
        except OSError:
            return False

    @property
    def complaints(self) -> list[str]:
        """The warnings and errors so far."""
        lines = (self.folder / 'output').read_text().splitlines()
        return [line for line in lines if ' WARNING ' in line or ' ERROR ' in line]

    # Files

    def _store(self, key: str, minor: int, data: dict) -> None:
        content = {'version': 1, 'minor_version': minor, 'key': key, 'data': data}
        (self.folder / '.storage' / key).write_text(json.dumps(content))

    @staticmethod
    def _entry(port: int) -> dict:
        return {
            'created_at': NOW, 'modified_at': NOW, 'data': {'broker': '127.0.0.1', 'port': port, 'protocol': '5'},
            'disabled_by': None, 'discovery_keys': {}, 'domain': 'mqtt', 'entry_id': 'mqtt', 'minor_version': 2,
            'options': {'discovery': True}, 'pref_disable_new_entities': False, 'pref_disable_polling': False,
            'source': 'user', 'subentries': [], 'title': 'broker', 'unique_id': None, 'version': 1,
        }

    @staticmethod
    def _users() -> dict:
        user = {
            'id': 'user', 'group_ids': ['system-admin'], 'is_owner': True, 'is_active': True, 'name': 'Test',
            'system_generated': False, 'local_only': False,
        }
        token = {
            'id': TOKEN, 'user_id': 'user', 'client_id': None, 'client_name': 'test', 'client_icon': None,
            'token_type': 'long_lived_access_token', 'created_at': NOW, 'access_token_expiration': 315360000.0,
            'token': KEY, 'jwt_key': KEY, 'last_used_at': None, 'last_used_ip': None, 'expire_at': None,
            'credential_id': None, 'version': '2025.4.4',
        }
        groups = [{'id': 'system-admin', 'name': 'Administrators'}]
        return {'users': [user], 'groups': groups, 'credentials': [], 'refresh_tokens': [token]}

    # Requests

    @staticmethod
    def bearer() -> str:
        """An access token of an administrator."""
        def encoded(octets: bytes) -> str:
            return base64.urlsafe_b64encode(octets).rstrip(b'=').decode()
        head = encoded(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())
        now = int(time.time())
        body = encoded(json.dumps({'iss': TOKEN, 'iat': now - 60, 'exp': now + 86400}).encode())
        text = f'{head}.{body}'
        return f'{text}.{encoded(hmac.new(KEY.encode(), text.encode(), hashlib.sha256).digest())}'

    def _request(self, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {'Authorization': f'Bearer {self.bearer()}', 'Content-Type': 'application/json'}
        request = urllib.request.Request(f'http://127.0.0.1:{self.port}/api/{path}', data, headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read()

    def get(self, path: str) -> typing.Any:
        return json.loads(self._request(path))

    def states(self) -> dict[str, dict]:
        """All entities by id."""
        return {state['entity_id']: state for state in self.get('states')}

    def state(self, entity: str) -> str | None:
        """The state of an entity; `None` if there is none."""
        return self.states().get(entity, {}).get('state')

    def template(self, text: str) -> str:
        return self._request('template', {'template': text}).decode()

    def device(self, entity: str, attribute: str) -> str:
        return self.template(f"{{{{ device_attr(device_id('{entity}'), '{attribute}') }}}}")

    def call(self, service: str, entity: str, **values: object) -> None:
        self._request(f'services/{service}', {'entity_id': entity, **values})

    def ask(self, kind: str, **members: object) -> typing.Any:
        """The result of a request by WebSocket."""
        url = f'http://127.0.0.1:{self.port}/api/websocket'
        command = [self._program.parent / 'python', '-c', ASK, url, self.bearer(), json.dumps({'type': kind} | members)]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert answer['success'], answer
        return answer['result']

    def statistics(self, entity: str, start: int, end: int) -> list[tuple[int, float, float, float]]:
        """The long-term statistics of the hours of a time range: start in seconds, minimum, mean and maximum."""
        times = {'start_time': rfc3339(start), 'end_time': rfc3339(end)}
        rows = self.ask('recorder/statistics_during_period', statistic_ids=[entity], period='hour', **times)
        return [(row['start'] // 1000, row['min'], row['mean'], row['max']) for row in rows.get(entity, [])]
