"""The controller of one peripheral."""
from __future__ import annotations

import asyncio
from typing import Protocol

from bumble import hci, ll
from bumble.controller import Connection
from bumble.core import PhysicalTransport

from .air import Air, Message
from .controller import SmallController


class LinkListener(Protocol):
    """Observer of a peripheral's link."""

    def accepts_link(self) -> bool: ...
    def link_up(self) -> None: ...
    def link_down(self, reason: int) -> None: ...


class PeripheralController(SmallController):
    """Holds at most one link and can go out of range."""

    def __init__(self, name: str, air: Air, address: hci.Address, listener: LinkListener) -> None:
        super().__init__(name, link=air, public_address=address if address.is_public else None)
        self.address = address
        self.air = air
        self.is_in_range = True
        # The PDUs in transit while the peripheral is out of range.
        self.held: list[Message] = []
        self._listener = listener
        self._loss: asyncio.TimerHandle | None = None
        air.attach(self, address)

    @property
    def connection(self) -> Connection | None:
        return next(iter(self.le_connections.values()), None)

    def accept(self, packet: ll.ConnectInd) -> bool:
        """Accepts a link from the host. Returns false if the peripheral does not advertise."""
        if self.connection is not None or not self._listener.accepts_link():
            return False
        peer = packet.initiator_address
        connection = self.le_connections[peer] = Connection(
            controller=self,
            handle=self.allocate_connection_handle(),
            role=hci.Role.PERIPHERAL,
            self_address=packet.advertiser_address,
            peer_address=peer,
            link=self.link,
            transport=PhysicalTransport.LE,
            link_type=hci.HCI_Connection_Complete_Event.LinkType.ACL,
        )
        self.send_hci_packet(
            hci.HCI_LE_Connection_Complete_Event(
                status=hci.HCI_ErrorCode.SUCCESS,
                connection_handle=connection.handle,
                role=connection.role,
                peer_address_type=peer.address_type,
                peer_address=peer,
                connection_interval=packet.interval,
                peripheral_latency=packet.latency,
                supervision_timeout=packet.timeout,
                central_clock_accuracy=7,
            )
        )
        self._listener.link_up()
        return True

    def on_le_disconnected(self, connection, reason: int) -> None:
        if self.connection is connection:
            super().on_le_disconnected(connection, reason)
            self._listener.link_down(reason)

    def drop(self, reason: int = hci.HCI_ErrorCode.REMOTE_USER_TERMINATED_CONNECTION_ERROR) -> None:
        """Ends the link."""
        if self.connection is not None:
            self.terminate(self.connection, reason)

    def lose_later(self, timeout: float) -> None:
        """Lets the link time out: the host's controller left without notice."""
        if (connection := self.connection) is not None:
            asyncio.get_running_loop().call_later(timeout, self._time_out, connection)

    def go_out_of_range(self) -> None:
        self.is_in_range = False
        if self.connection is not None and self.air.host is not None and self._loss is None:
            timeout = self.air.host.supervision_timeout(self.address)
            self._loss = asyncio.get_running_loop().call_later(timeout, self._lose)

    def come_back(self) -> None:
        """Delivers the held PDUs late."""
        self.is_in_range = True
        if self._loss is not None:
            self._loss.cancel()
            self._loss = None
        held, self.held = self.held, []
        for message in held:
            self.air.deliver(message)

    def _lose(self) -> None:
        """Ends the link on both sides after the supervision timeout."""
        self._loss = None
        held, self.held = self.held, []
        for message in held:
            message.on_sent(False)
        if (connection := self.connection) is not None:
            self._time_out(connection)
        if self.air.host is not None:
            self.air.host.lose(self.address)

    def _time_out(self, connection) -> None:
        self.on_le_disconnected(connection, hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR)
