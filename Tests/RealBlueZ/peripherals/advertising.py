"""Advertising of a peripheral."""
from __future__ import annotations

import asyncio
import random
import struct

from bumble.core import UUID

from .air import AdvertisingEvent
from .scenario import AdvertisingSpec, ScenarioError

_LONGEST = 31
# ADV_IND, and ADV_NONCONN_IND for beacons.
_CONNECTABLE, _BEACON = 0, 3


def advertising_data(spec: AdvertisingSpec, name: str, turn: int = 0) -> tuple[bytes, bytes]:
    """The legacy advertising data and scan response. Fields that do not fit into the first go to the second.

    Beacons have no scan response. Raises ScenarioError when it is too much.
    """
    data = response = b''
    for structure in _structures(spec, turn):
        if len(data) + len(structure) <= _LONGEST:
            data += structure
        elif spec.is_connectable and len(response) + len(structure) <= _LONGEST:
            response += structure
        else:
            raise ScenarioError(f"peripheral '{name}': its data is too long for legacy advertising")
    return data, response


def _structures(spec: AdvertisingSpec, turn: int):
    if spec.has_flags:
        yield _structure(0x01, b'\x06')
    if spec.tx_power is not None:
        yield _structure(0x0A, struct.pack('b', spec.tx_power))
    short = [uuid for uuid in spec.services if len(uuid) == 4]
    long = [uuid for uuid in spec.services if len(uuid) != 4]
    for kind, uuids in ((0x03, short), (0x07, long)):
        if uuids:
            yield _structure(kind, b''.join(_octets(uuid) for uuid in uuids))
    if spec.appearance is not None:
        yield _structure(0x19, struct.pack('<H', spec.appearance))
    for uuid, turns in spec.service_data.items():
        yield _structure(0x16 if len(uuid) == 4 else 0x21, _octets(uuid) + turns[turn % len(turns)])
    for company, turns in spec.manufacturer_data.items():
        yield _structure(0xFF, struct.pack('<H', company) + turns[turn % len(turns)])
    if spec.name is not None:
        yield _structure(0x09, spec.name.encode())


def _structure(kind: int, value: bytes) -> bytes:
    return bytes([len(value) + 1, kind]) + value if len(value) < 255 else bytes(256)


def _octets(uuid: str) -> bytes:
    return UUID(uuid).to_bytes()


class Advertiser:
    """Sends advertisements at an interval, with the random delay of the specification."""

    def __init__(self, controller, spec: AdvertisingSpec, name: str) -> None:
        self._controller = controller
        self._spec = spec
        self._name = name
        # Data that is too long is an error at the start.
        advertising_data(spec, name)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_on(self) -> bool:
        return self._timer is not None

    def start(self) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(random.random() * self._spec.interval, self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        event_type = _CONNECTABLE if self._spec.is_connectable else _BEACON
        turn = int(asyncio.get_running_loop().time() / self._spec.turn)
        data = advertising_data(self._spec, self._name, turn)
        event = AdvertisingEvent(self._controller.address, event_type, *data, self._spec.rssi)
        self._controller.send_advertising_pdu(event)
        delay = self._spec.interval + random.random() * 0.010
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)
