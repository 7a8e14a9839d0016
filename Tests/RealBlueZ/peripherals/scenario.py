"""Scenarios: the adapter and the peripherals in range."""
from __future__ import annotations

import dataclasses

from .records import RecordsSpec
from .services import ServiceSpec


class ScenarioError(Exception):
    """An invalid scenario, or one that only the simulator supports."""


@dataclasses.dataclass
class AdapterSpec:
    name: str = 'hci0'
    address: str = '00:00:5E:00:53:00'
    slots: int | None = None
    is_present: bool = True


@dataclasses.dataclass
class AdvertisingSpec:
    name: str | None = None
    services: list[str] = dataclasses.field(default_factory=list)
    # The payloads, sent in turn.
    manufacturer_data: dict[int, list[bytes]] = dataclasses.field(default_factory=dict)
    service_data: dict[str, list[bytes]] = dataclasses.field(default_factory=dict)
    # The seconds for which each of several payloads is sent.
    turn: float = 1.0
    rssi: int = -60
    appearance: int | None = None
    # Seconds.
    interval: float = 0.2
    is_connectable: bool = True
    # Without Flags, only scans with a filter show the peripheral.
    has_flags: bool = True
    # dBm.
    tx_power: int | None = None


@dataclasses.dataclass
class PeripheralSpec:
    name: str
    address: str
    is_public: bool = False
    is_present: bool = True
    advertising: AdvertisingSpec = dataclasses.field(default_factory=AdvertisingSpec)
    services: list[ServiceSpec] = dataclasses.field(default_factory=list)
    # The latency of one ATT response in seconds.
    att_latency: float = 0.0
    connect_failures: int = 0
    pairs: bool = True
    mtu: int = 517
    # The stored records, if it has any.
    records: RecordsSpec | None = None


@dataclasses.dataclass
class Scenario:
    adapter: AdapterSpec
    peripherals: list[PeripheralSpec]
