"""One remote device: its GATT server and its ordered faults."""
from __future__ import annotations

import asyncio
import functools
import struct

from bumble import att, hci
from bumble.device import AdvertisingType, Device, DeviceConfiguration, LegacyAdvertiser
from bumble.pairing import PairingConfig, PairingDelegate

from .advertising import Advertiser
from .air import Air
from .controller import QuietHost
from .gatt_table import Characteristic, GattTable
from .indications import Indications
from .peripheral_controller import PeripheralController
from .recorder import Recorder
from .scenario import PeripheralSpec
from .truth import TruthLog

# Seconds from a link to its end by a refusing peripheral: the host has seen the link and not used it yet.
_REFUSAL = 0.002


class Delegate(PairingDelegate):
    """Pairs with Just Works, or refuses."""

    def __init__(self, accepts: bool) -> None:
        super().__init__(PairingDelegate.NO_OUTPUT_NO_INPUT)
        self._accepts = accepts

    async def accept(self) -> bool:
        return self._accepts


class PlaceholderAdvertiser(LegacyAdvertiser):
    """A placeholder advertiser for bumble's device, which does not advertise itself."""

    async def start(self) -> None:
        pass


class Peripheral:
    """Advertises without a link and notifies with one."""

    def __init__(self, spec: PeripheralSpec, index: int, air: Air, truth: TruthLog) -> None:
        self.spec = spec
        self.silence = 'off'
        # The latency of each ATT response in seconds.
        self.att_latency = spec.att_latency
        self.is_advertising_allowed = True
        # The number of next links that end right after they are made.
        self.refusals = spec.connect_failures
        self._index = index
        self._air = air
        self._truth = truth
        kind = hci.Address.PUBLIC_DEVICE_ADDRESS if spec.is_public else hci.Address.RANDOM_DEVICE_ADDRESS
        self.controller = PeripheralController(spec.name, air, hci.Address(spec.address, kind), self)
        self.controller.is_in_range = spec.is_present
        self._advertiser = Advertiser(self.controller, spec.advertising, spec.name)
        self._device = self._make_device()
        self._table = GattTable(self._device, spec.services, self._read, self._wrote, self._subscribed)
        self.recorder = Recorder(spec.records, self._table, self._notify, self.drop) if spec.records else None
        self._indications = Indications(self._send)
        self._last_answer = 0.0
        self._answer = self._device.gatt_server.on_gatt_pdu
        self._device.gatt_server.on_gatt_pdu = self._asked

    def _make_device(self) -> Device:
        spec = self.spec
        configuration = DeviceConfiguration(name=spec.advertising.name or spec.name)
        if not spec.is_public:
            configuration.address = self.controller.address
        configuration.irk = bytes(self.controller.address) + bytes(10)
        host = QuietHost()
        host.controller = self.controller
        device = Device(config=configuration, host=host)
        identity = PairingConfig.AddressType.PUBLIC if spec.is_public else PairingConfig.AddressType.RANDOM
        device.pairing_config_factory = lambda connection: PairingConfig(
            mitm=False, delegate=Delegate(spec.pairs), identity_address_type=identity
        )
        own = hci.OwnAddressType.PUBLIC if spec.is_public else hci.OwnAddressType.RANDOM
        kind = AdvertisingType.UNDIRECTED_CONNECTABLE_SCANNABLE
        device.legacy_advertiser = PlaceholderAdvertiser(device, kind, own, hci.Address.ANY, auto_restart=True)
        return device

    async def start(self) -> None:
        self._device.gatt_server.max_mtu = self.spec.mtu
        await self._device.power_on()
        self._advertise()

    # The link.

    @property
    def is_present(self) -> bool:
        return self.controller.is_in_range

    @property
    def is_connected(self) -> bool:
        return self.controller.connection is not None

    def _advertise(self) -> None:
        """Starts or stops advertising. A connected peripheral does not advertise."""
        if self.is_advertising_allowed and not self.is_connected:
            self._advertiser.start()
        else:
            self._advertiser.stop()

    def accepts_link(self) -> bool:
        return self._advertiser.is_on and self.spec.advertising.is_connectable

    def link_up(self) -> None:
        self._advertiser.stop()
        self._truth.connect(self.spec.address, self._air.adapter_name)
        if self.refusals > 0:
            self.refusals -= 1
            error = hci.HCI_ErrorCode.CONNECTION_FAILED_TO_BE_ESTABLISHED_ERROR
            asyncio.get_running_loop().call_later(_REFUSAL, self.controller.drop, error)
        else:
            self._start_notifying()

    def link_down(self, reason: int) -> None:
        self._stop_notifying()
        self._indications.clear()
        if self.recorder is not None:
            self.recorder.cancel()
        for characteristic in self._table.characteristics:
            characteristic.subscriber = None
        is_unplugged = reason == hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR and self._air.host is None
        self._truth.disconnect(self.spec.address, reason, is_unplugged)
        self._advertise()

    # Requests.

    def _asked(self, bearer, pdu) -> None:
        """Handles a request, or the confirmation of an indication."""
        if self.recorder is not None and self.recorder.is_cut():
            return
        if pdu.op_code == att.Opcode.ATT_HANDLE_VALUE_CONFIRMATION:
            self._indications.confirmed()
            return
        if self.silence == 'all':
            return
        loop = asyncio.get_running_loop()
        if self.att_latency <= 0 and self._last_answer <= loop.time():
            self._answer(bearer, pdu)
            return
        self._last_answer = max(loop.time() + self.att_latency, self._last_answer + 1e-6)
        loop.call_at(self._last_answer, self._answer_late, bearer, pdu)

    def _answer_late(self, bearer, pdu) -> None:
        if self.silence != 'all' and self._device.connections.get(bearer.handle) is bearer:
            self._answer(bearer, pdu)

    def _read(self, characteristic: Characteristic) -> bytes:
        return self.recorder.records.current_time() if characteristic.spec.role == 'clock' else characteristic.value

    def _wrote(self, characteristic: Characteristic, value: bytes) -> None:
        rule = characteristic.spec.writing
        is_control = characteristic.spec.role == 'control'
        error = rule.error(value) or (self.recorder.error(value) if is_control else None)
        self._truth.write(self.spec.address, characteristic.spec.uuid, value, error)
        if error is not None:
            raise att.ATT_Error(error_code=error)
        if is_control:
            self.recorder.request(value)
            return
        if rule.outcome == 'reset-energy':
            for other in self._table.characteristics:
                if other.service == characteristic.service:
                    other.energy_reset = other.sent
            return
        is_new, characteristic.value = characteristic.value != value, value
        if is_new and rule.outcome == 'notify':
            self._notify(characteristic, value)

    def _subscribed(self, characteristic: Characteristic) -> None:
        self._truth.subscribe(self.spec.address, characteristic.spec.uuid, characteristic.subscriber is not None)

    # Notifications.

    def _start_notifying(self) -> None:
        """Starts the notifications of each characteristic at its rate and with its own phase."""
        self._stop_notifying()
        loop = asyncio.get_running_loop()
        for place, characteristic in enumerate(self._table.characteristics):
            if characteristic.rate > 0:
                phase = (self._index * 61 + place * 23 + 10) % 100 / 100
                due = loop.time() + phase / characteristic.rate
                characteristic.timer = loop.call_at(due, self._produce, characteristic, due)

    def _stop_notifying(self) -> None:
        for characteristic in self._table.characteristics:
            if characteristic.timer is not None:
                characteristic.timer.cancel()
                characteristic.timer = None

    def _produce(self, characteristic: Characteristic, due: float) -> None:
        """Sends late notifications too, but skips them after a stall of a second or more."""
        loop = asyncio.get_running_loop()
        lag, interval = loop.time() - due, 1 / characteristic.rate
        due += interval if lag < 1 else max(interval, lag)
        characteristic.timer = loop.call_at(due, self._produce, characteristic, due)
        if self.silence == 'off':
            self._notify(characteristic, characteristic.next_payload())

    def _notify(self, characteristic: Characteristic, payload: bytes) -> None:
        """Sends one notification or indication and records the result."""
        if not (self.is_connected and self.is_present):
            return
        number = characteristic.sent
        characteristic.sent += 1
        bearer = characteristic.subscriber
        record = functools.partial(self._truth.notification, self.spec.address, characteristic.spec.uuid, number)
        if bearer is None:
            record(payload, False)
            return
        payload = payload[:bearer.att_mtu - 3]
        operation = 0x1D if characteristic.indicates else 0x1B
        pdu = struct.pack('<BH', operation, characteristic.attribute.handle) + payload
        send = self._indications.add if characteristic.indicates else self._send
        send(pdu, functools.partial(record, payload))

    def _send(self, pdu: bytes, on_sent) -> None:
        """Sends directly to the link, bypassing bumble's host: the same octets with less Python."""
        if self.recorder is not None and self.recorder.is_cut():
            on_sent(False)
            return
        self._air.send_to_host(self.controller, struct.pack('<HH', len(pdu), att.ATT_CID) + pdu, on_sent)

    # Orders.

    def drop(self) -> None:
        self.controller.drop()

    def vanish(self) -> None:
        self._stop_notifying()
        self.controller.go_out_of_range()

    def appear(self) -> None:
        """Returns to range. A link that has not timed out continues."""
        if not self.is_present:
            self.controller.come_back()
            if self.is_connected:
                self._start_notifying()

    def allow_advertising(self, is_allowed: bool) -> None:
        self.is_advertising_allowed = is_allowed
        self._advertise()

    def set_rate(self, rate: float) -> None:
        for characteristic in self._table.characteristics:
            if characteristic.has_values_of_its_own:
                characteristic.rate = rate
        if self.is_connected and self.is_present:
            self._start_notifying()

    def burst(self, count: int) -> None:
        """Sends this number of notifications at once, of each characteristic with generated values."""
        for characteristic in self._table.characteristics:
            if characteristic.has_values_of_its_own:
                for _ in range(count):
                    self._notify(characteristic, characteristic.next_payload())

    def notify(self, uuid: str, payload: bytes) -> bool:
        """Sends these octets. Returns false if there is no such characteristic."""
        for characteristic in self._table.characteristics:
            if characteristic.spec.uuid == uuid:
                self._notify(characteristic, payload)
                return True
        return False

    def change_services(self, hidden: set[str]) -> None:
        self._indicate_service_changed(self._table.change_services(hidden))

    def hide_services(self, hidden: set[str]) -> None:
        self._indicate_service_changed(self._table.hide_services(hidden))

    def _indicate_service_changed(self, value: bytes) -> None:
        attribute = self._table.service_changed
        if self.is_connected:
            for values in self._device.gatt_server.subscribers.values():
                if values.get(attribute.handle, b'\0')[0] & 2:
                    self._indications.add(struct.pack('<BH', 0x1D, attribute.handle) + value, lambda delivered: None)

    async def forget(self) -> None:
        """Removes its bonds."""
        await self._device.keystore.delete_all()

    def status(self) -> str:
        state = 'connected' if self.is_connected else 'advertising' if self.is_present else 'away'
        characteristics = self._table.characteristics
        columns = [
            self.spec.name, self.spec.address, state, self._air.adapter_name if self.is_connected else '',
            f'subscriptions {sum(each.subscriber is not None for each in characteristics)}',
            f'notifications {sum(each.sent for each in characteristics)}',
            '' if self.silence == 'off' else f'silent: {self.silence}',
        ]
        return '  '.join(column for column in columns if column)
