"""Sources of the values that a peripheral notifies.

The same functions of the notification's number as in Sources/Tools/GattherdSimulator/Scenario/PayloadSource.swift,
so that one checker serves both. A source is called with the number, the stored value and the number at which
the energy was last reset.
"""
import dataclasses


def counter(number: int, stored: bytes, reset: int) -> bytes:
    """The stored byte plus 1."""
    return bytes([(stored[0] + 1 if stored else 1) & 0xFF])


def listed(payloads: list[bytes]):
    """A list of values, repeated."""
    return lambda number, stored, reset: payloads[number % len(payloads)]


def wave(octets: int, low: int, high: int):
    """A triangle wave: a little-endian integer of this number of octets."""
    height = max(1, high - low)

    def source(number: int, stored: bytes, reset: int) -> bytes:
        step = number % (2 * height)
        return little_endian(low + (step if step <= height else 2 * height - step), octets)
    return source


def thermometer(number: int, stored: bytes, reset: int) -> bytes:
    """Temperature Measurement with a FLOAT in tenths of a degree Celsius, 36.0 to 39.9."""
    return b'\0' + little_endian(360 + number % 40, 3) + b'\xff'


@dataclasses.dataclass(frozen=True)
class HeartRate:
    """A Heart Rate Measurement (Heart Rate Service 1.0)."""

    is_wide: bool = False
    has_energy: bool = False
    intervals: int = 0
    contact: str = 'none'

    def __call__(self, number: int, stored: bytes, reset: int) -> bytes:
        payload = bytes([self._flags()])
        payload += little_endian(256 + number % 500, 2) if self.is_wide else bytes([60 + number % 120])
        if self.has_energy:
            payload += little_endian(number - reset, 2)
        for index in range(self.intervals):
            payload += little_endian(600 + (number % 1_000_000 * self.intervals + index) % 1000, 2)
        return payload

    def _flags(self) -> int:
        contact = {'none': 0, 'no': 0x04, 'yes': 0x06}[self.contact]
        return self.is_wide | contact | self.has_energy << 3 | (self.intervals > 0) << 4


def little_endian(value: int, octets: int) -> bytes:
    """The little-endian two's complement of `value` in this number of octets."""
    return (value & (1 << 8 * octets) - 1).to_bytes(octets, 'little')
