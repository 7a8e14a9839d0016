"""The virtual radio: range, latency and loss of PDUs."""
from __future__ import annotations

import asyncio
import collections
import dataclasses
from collections.abc import Callable

from bumble import hci, ll
from bumble.link import LocalLink

IGNORED: Callable[[bool], None] = lambda is_delivered: None


@dataclasses.dataclass
class AdvertisingEvent(ll.AdvertisingPdu):
    """An advertisement and its scan response."""

    advertiser_address: hci.Address
    # 0 ADV_IND, 3 ADV_NONCONN_IND.
    event_type: int
    data: bytes
    scan_response: bytes
    rssi: int


@dataclasses.dataclass
class Message:
    """A PDU in transit between a peripheral and the host's controller."""

    peripheral: object
    is_to_host: bool
    arrive: Callable[[], None]
    on_sent: Callable[[bool], None] = IGNORED


class Air(LocalLink):
    """Carries PDUs between the host's controller and those of the peripherals.

    PDUs keep their order in each direction. PDUs to and from a peripheral that is out of range are held. They arrive
    if it comes back before the supervision timeout, and are lost otherwise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.host = None
        # The latency of each PDU in seconds.
        self.latency = 0.0
        self.adapter_name = ''
        self._peripherals: dict[bytes, object] = {}
        self._last_arrival: dict[tuple[object, bool], float] = collections.defaultdict(float)

    def attach(self, peripheral, address: hci.Address) -> None:
        self._peripherals[bytes(address)] = peripheral

    def peripheral(self, address: hci.Address):
        return self._peripherals.get(bytes(address))

    def deliver(self, message: Message) -> None:
        peripheral = message.peripheral
        if not peripheral.is_in_range:
            peripheral.held.append(message)
            return
        loop = asyncio.get_running_loop()
        key = (peripheral, message.is_to_host)
        last, now = self._last_arrival[key], loop.time()
        if self.latency <= 0 and last <= now:
            loop.call_soon(message.arrive)
        else:
            when = self._last_arrival[key] = max(now + self.latency, last + 1e-6)
            loop.call_at(when, message.arrive)

    def send_to_host(self, peripheral, data: bytes, on_sent: Callable[[bool], None] = IGNORED) -> None:
        """Sends an L2CAP frame. Calls `on_sent` with whether it was handed to the host.

        A frame that is in transit when the peripheral ends its link is discarded, as by a real controller.
        """
        connection = peripheral.connection

        def arrive() -> None:
            is_linked = self.host is not None and peripheral.connection is connection
            on_sent(is_linked and self.host.receive(peripheral.address, data))
        self.deliver(Message(peripheral, True, arrive, on_sent))

    # Called by bumble's controllers.

    def send_advertising_pdu(self, sender_controller, packet) -> None:
        if isinstance(packet, ll.ConnectInd):
            self._request_link(packet)
        elif self.host is not None and self.host.is_listening and sender_controller.is_in_range:
            asyncio.get_running_loop().call_soon(self.host.hear, packet)

    def _request_link(self, packet: ll.ConnectInd) -> None:
        """Connects. If the peripheral has just left and does not answer, the host has a link to nobody."""
        target, host = self.peripheral(packet.advertiser_address), self.host

        def arrive() -> None:
            if not target.accept(packet):
                host.lose_later(packet.advertiser_address)
        if target.is_in_range:
            self.deliver(Message(target, False, arrive))
        else:
            host.lose_later(packet.advertiser_address)

    def send_acl_data(self, sender_controller, destination_address, transport, data) -> None:
        if sender_controller is not self.host:
            self.send_to_host(sender_controller, data)
            return
        target = self.peripheral(destination_address)
        connection = sender_controller.le_connections.get(destination_address)
        if target is not None and connection is not None:
            source = connection.self_address
            self.deliver(Message(target, False, lambda: target.on_link_acl_data(source, transport, data)))

    def send_ll_control_pdu(self, sender_address, receiver_address, packet) -> None:
        if (target := self.peripheral(receiver_address)) is not None:
            self.deliver(Message(target, False, lambda: target.on_ll_control_pdu(sender_address, packet)))
        elif (source := self.peripheral(sender_address)) is not None:
            def arrive() -> None:
                if self.host is not None:
                    self.host.on_ll_control_pdu(sender_address, packet)
            self.deliver(Message(source, True, arrive))
