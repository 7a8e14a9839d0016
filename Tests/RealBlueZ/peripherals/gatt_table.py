"""The attributes of one peripheral, as a table of bumble's GATT server."""
from __future__ import annotations

import asyncio
import dataclasses
import struct
from collections.abc import Callable

from bumble import att
from bumble.core import UUID
from bumble.device import Device
from bumble.gatt import Characteristic as BumbleCharacteristic
from bumble.gatt import CharacteristicValue, Descriptor, Service

from .services import READ, CharacteristicSpec, ServiceSpec

_Permissions = att.Attribute.Permissions
_PLAIN = _Permissions.READABLE | _Permissions.WRITEABLE
_ENCRYPTED = _PLAIN | _Permissions.READ_REQUIRES_ENCRYPTION | _Permissions.WRITE_REQUIRES_ENCRYPTION
# The distance by which handles move when the table changes.
_STEP = 0x40


@dataclasses.dataclass(eq=False)
class Characteristic:
    """One characteristic and its state."""

    spec: CharacteristicSpec
    service: int
    value: bytes
    rate: float
    # The number of notifications that were sent.
    sent: int = 0
    energy_reset: int = 0
    # The subscribed connection, and whether it is subscribed to indications.
    subscriber: object | None = None
    indicates: bool = False
    attribute: BumbleCharacteristic | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def has_values_of_its_own(self) -> bool:
        return self.spec.source is not None

    def next_payload(self) -> bytes:
        """Returns the next generated value, which reads return from now on."""
        if self.spec.source is not None:
            self.value = self.spec.source(self.sent, self.value, self.energy_reset)
        return self.value


class GattTable:
    """Makes the attributes, and moves them when the services change."""

    def __init__(
        self,
        device: Device,
        specs: list[ServiceSpec],
        read: Callable[[Characteristic], bytes],
        wrote: Callable[[Characteristic, bytes], None],
        subscribed: Callable[[Characteristic], None],
    ) -> None:
        self._server = device.gatt_server
        self._specs = specs
        self._read = read
        self._wrote = wrote
        self._subscribed = subscribed
        # Generic Access and Generic Attribute, which do not move.
        self._fixed = len(self._server.attributes)
        self._fixed_services = len(self._server.services)
        self._shift = 0
        self._version = 0
        self._server.next_handle = lambda: 1 + len(self._server.attributes) + self._shift
        self.service_changed = device.gatt_service.service_changed_characteristic
        self.characteristics = [
            Characteristic(spec, index, spec.value, spec.rate)
            for index, service in enumerate(specs) for spec in service.characteristics
        ]
        self._add_services(hidden=set())

    def change_services(self, hidden: set[str]) -> bytes:
        """Moves all handles and hides services. Returns the value of Service Changed."""
        first = self._fixed + 1
        self._version += 1
        del self._server.attributes[self._fixed:]
        del self._server.services[self._fixed_services:]
        self._server.attributes_by_handle.clear()
        for values in self._server.subscribers.values():
            for handle in [handle for handle in values if handle >= first]:
                del values[handle]
        self._shift = _STEP * (self._version % 64)
        self._add_services(hidden)
        return struct.pack('<HH', first, 0xFFFF)

    def hide_services(self, hidden: set[str]) -> bytes:
        """Hides these services and shows the others without moving handles. Returns the value of Service Changed."""
        gone = {
            attribute.handle for attributes in (attributes for uuid, attributes in self._spans if uuid in hidden)
            for attribute in attributes
        }
        changed = {handle for handle in self._all_handles() if (handle in gone) != (handle in self._gone)}
        self._gone = gone
        present = [each for _, attributes in self._spans for each in attributes if each.handle not in gone]
        self._server.attributes[self._fixed:] = present
        self._server.attributes_by_handle.clear()
        for values in self._server.subscribers.values():
            for handle in [handle for handle in values if handle in gone]:
                del values[handle]
        for characteristic in self.characteristics:
            if characteristic.attribute is not None and characteristic.attribute.handle in gone:
                characteristic.subscriber = None
        return struct.pack('<HH', min(changed, default=1), max(changed, default=0xFFFF))

    def _all_handles(self) -> list[int]:
        return [each.handle for _, attributes in self._spans for each in attributes]

    def _add_services(self, hidden: set[str]) -> None:
        # Each visible service with its attributes.
        self._spans: list[tuple[str, list]] = []
        self._gone: set[int] = set()
        for index, service in enumerate(self._specs):
            members = [each for each in self.characteristics if each.service == index]
            for characteristic in members:
                characteristic.subscriber = None
                characteristic.attribute = self._attribute(characteristic)
            if service.uuid not in hidden:
                start = len(self._server.attributes)
                self._server.add_service(Service(UUID(service.uuid), [each.attribute for each in members]))
                self._spans.append((service.uuid, self._server.attributes[start:]))

    def _attribute(self, characteristic: Characteristic) -> BumbleCharacteristic:
        spec = characteristic.spec
        attribute = BumbleCharacteristic(
            UUID(spec.uuid),
            BumbleCharacteristic.Properties(spec.properties),
            _ENCRYPTED if spec.is_encrypted else _PLAIN,
            CharacteristicValue(
                # Like real ones, it answers unannounced reads with an empty value.
                read=lambda connection: self._read(characteristic) if spec.properties & READ else b'',
                write=lambda connection, value: self._wrote(characteristic, value),
            ),
            [Descriptor(UUID(uuid), _Permissions.READABLE, value) for uuid, value in spec.descriptors],
        )
        attribute.on(
            attribute.EVENT_SUBSCRIPTION,
            lambda bearer, notifies, indicates: self._subscribe(characteristic, bearer, notifies, indicates),
        )
        return attribute

    def _subscribe(self, characteristic: Characteristic, bearer, notifies: bool, indicates: bool) -> None:
        was_subscribed = characteristic.subscriber is not None
        characteristic.subscriber = bearer if notifies or indicates else None
        characteristic.indicates = indicates and not notifies
        if was_subscribed != (notifies or indicates):
            self._subscribed(characteristic)
