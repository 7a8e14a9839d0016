"""The log of the events at the peripherals, in the simulator's format.

One JSON object per line (Sources/Tools/GattherdSimulator/README.md, "The truth log"). A notification is logged when it is
known whether it was handed to the host's controller: `delivered` is false for simulated losses too.
"""
import time

# HCI's reasons, as received by a peripheral. BlueZ ends links with 0x15 at power off and at its own end.
_REASONS = {0x05: 'authentication', 0x08: 'timeout', 0x13: 'local', 0x15: 'power-off', 0x16: 'remote'}


class TruthLog:
    def __init__(self, path: str | None):
        self._file = open(path, 'w', encoding='ascii') if path else None
        self._lines: list[str] = []

    def notification(self, address: str, uuid: str, number: int, payload: bytes, is_delivered: bool) -> None:
        delivered = 'true' if is_delivered else 'false'
        self._add(
            f'"event":"notification","dev":"{address}","char":"{uuid}","n":{number},"hex":"{payload.hex()}",'
            f'"delivered":{delivered}'
        )

    def write(self, address: str, uuid: str, value: bytes, error: int | None) -> None:
        code = 'null' if error is None else error
        self._add(f'"event":"write","dev":"{address}","char":"{uuid}","hex":"{value.hex()}","error":{code}')

    def subscribe(self, address: str, uuid: str, is_subscribed: bool) -> None:
        event = 'subscribe' if is_subscribed else 'unsubscribe'
        self._add(f'"event":"{event}","dev":"{address}","char":"{uuid}"')

    def connect(self, address: str, adapter: str) -> None:
        self._add(f'"event":"connect","dev":"{address}","adapter":"{adapter}"')

    def disconnect(self, address: str, code: int, is_unplugged: bool) -> None:
        reason = 'unplugged' if is_unplugged else _REASONS.get(code, f'0x{code:02x}')
        self._add(f'"event":"disconnect","dev":"{address}","reason":"{reason}","code":{code}')

    def _add(self, members: str) -> None:
        if self._file:
            self._lines.append(f'{{"t":{time.time_ns() // 1000},{members}}}\n')

    def flush(self) -> None:
        if self._file and self._lines:
            self._file.write(''.join(self._lines))
            self._file.flush()
            self._lines.clear()
