"""The records of a recorder: a ring, numbers, a clock, and the requests to its control point.

Like Sources/Tools/GattherdSimulator/World/SimulatedRecords.swift.
"""
from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

from .payloads import little_endian

# Record Access Control Point: op codes, operators and results.
_REPORT, _ABORT, _COUNT, _COUNT_IS, _RESULT = 1, 3, 4, 5, 6
_FROM, _RANGE = 3, 4
_SUCCESS, _UNSUPPORTED, _NO_RECORDS = 1, 2, 6


@dataclasses.dataclass
class RecordsSpec:
    form: str = 'glucose'
    # The records at the start.
    count: int = 100
    # The most records that are stored; beyond them the oldest is overwritten.
    capacity: int = 1_000_000
    # Seconds between two records; 0 for no new ones.
    interval: float = 60.0
    # The bits of a record's number.
    bits: int = 16
    # The records sent per second.
    speed: int = 1000
    # The device's clock minus the right time, in seconds.
    clock_error: float = 0.0
    # The least and the most PDUs after which the link is cut.
    cut: tuple[int, int] | None = None


class Records:
    """The stored records. A record is identified by its place among all that were ever made."""

    def __init__(self, spec: RecordsSpec) -> None:
        self.spec = spec
        self._start = time.time()
        # The first record since the last reset.
        self._first = 0
        # The first records after settings of the clock, and the clock's errors from them on.
        self._settings = [(0, spec.clock_error)]

    def _made(self) -> int:
        """The number of records that were made, also of those that are overwritten."""
        passed = time.time() - self._start
        return self.spec.count + (int(passed / self.spec.interval) if self.spec.interval > 0 else 0)

    def _stored(self) -> range:
        made = self._made()
        return range(max(min(self._first, made), made - self.spec.capacity), made)

    def _number(self, record: int) -> int:
        return (record - self._first) & ((1 << self.spec.bits) - 1)

    def _time(self, record: int) -> float:
        """The right time of a record; those before the start were made at the same intervals."""
        return self._start + (self.spec.interval or 60.0) * (record - self.spec.count + 1)

    def _reading(self, record: int) -> float:
        """The device's clock when it made a record."""
        return self._time(record) + next(error for first, error in reversed(self._settings) if first <= record)

    def set_clock(self, error: float) -> None:
        self._settings.append((self._made(), error))

    def reset(self) -> None:
        """Loses all records; the next one has the number 0."""
        self._first = self._made()

    def current_time(self) -> bytes:
        """Current Time of the device's clock."""
        clock = time.time() + self._settings[-1][1]
        return _date(clock) + bytes([0, int(clock % 1 * 256), 0])

    def chosen(self, operand: bytes) -> list[int]:
        """The records that a request chooses by operator, filter type and numbers."""
        if len(operand) < 3 or operand[0] not in (_FROM, _RANGE):
            return list(self._stored())
        numbers = operand[2:]
        width = len(numbers) // 2 if operand[0] == _RANGE else len(numbers)
        least = int.from_bytes(numbers[:width], 'little')
        most = int.from_bytes(numbers[width:], 'little') if operand[0] == _RANGE else 1 << 32
        return [record for record in self._stored() if least <= self._number(record) <= most]

    def value(self, record: int) -> bytes:
        """The value of a record, which identifies it. A numbered one also has its right time in milliseconds."""
        number = self._number(record)
        if self.spec.form == 'glucose':
            # In mmol/L, of capillary whole blood from a finger.
            amount = bytes([record % 1000 & 0xFF, 0xB0 | record % 1000 >> 8, 0x11])
            return b'\x02' + little_endian(number, 2) + _date(self._reading(record)) + amount
        return (
            little_endian(number, self.spec.bits // 8) + little_endian(int(self._reading(record)), 4)
            + little_endian(record, 4) + little_endian(int(self._time(record) * 1000), 8)
        )


class Transfer:
    """The answer to a request to the control point: records to notify, then a result to indicate."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._rest: Iterator[int] | None = None
        self._result = b''

    @property
    def is_active(self) -> bool:
        return self._rest is not None

    def cancel(self) -> None:
        self._rest = None

    def is_refused(self, request: bytes) -> bool:
        """True if the request must wait for the end of the one before."""
        return self.is_active and request[:1] != bytes([_ABORT])

    def request(self, request: bytes) -> None:
        """Starts the answer to a request."""
        operation, chosen = request[0] if request else 0, []
        if operation == _COUNT:
            count = len(self._records.chosen(request[1:]))
            self._result = bytes([_COUNT_IS, 0]) + little_endian(count, self._records.spec.bits // 8)
        else:
            result = _SUCCESS if operation == _ABORT else _UNSUPPORTED
            if operation == _REPORT:
                chosen = self._records.chosen(request[1:])
                result = _SUCCESS if chosen else _NO_RECORDS
            self._result = bytes([_RESULT, 0, operation, result])
        self._rest = iter(chosen)

    def next(self) -> tuple[bytes, bool]:
        """The next value, and whether it is the result that ends the transfer."""
        record = next(self._rest, None)
        if record is None:
            self.cancel()
            return self._result, True
        return self._records.value(record), False


def _date(seconds: float) -> bytes:
    """Date Time of seconds since 1970."""
    date = time.gmtime(int(seconds))
    return little_endian(date.tm_year, 2) + bytes(date[1:6])
