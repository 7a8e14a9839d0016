"""The controller that the Linux kernel sees through /dev/vhci."""
from __future__ import annotations

import asyncio
import struct

from bumble import hci, ll
from bumble.controller import Connection
from bumble.core import PhysicalTransport

from .air import AdvertisingEvent, Air
from .controller import SmallController

# The kernel drops what is reported before it considers the discovery started, and the duplicate filter then hides
# that device for 10 s. A real radio is not that fast: this long, in seconds, nothing is reported.
_DEAF_AFTER_SCAN_START = 0.030
# Six connection intervals of 50 ms.
_ESTABLISHMENT = 0.3
_ADV_IND, _SCAN_RSP = 0, 4
_LE_META = 0x3E


class HostController(SmallController):
    """Scans, connects and transfers data. `slots` is the maximum number of links."""

    filter_accept_list_size = 64

    def __init__(self, name: str, air: Air, address: str, slots: int | None) -> None:
        super().__init__(name, link=air, public_address=address)
        self.slots = slots
        # True while the firmware hangs: no packet goes in or out.
        self.is_hung = False
        self._accept_list: set[bytes] = set()
        self._reported: set[tuple[bytes, int, bytes]] = set()
        self._deaf_until = 0.0
        self._supervision_timeouts: dict[bytes, float] = {}

    # Packets from the kernel, data to the kernel.

    def on_packet(self, packet: bytes) -> None:
        if not self.is_hung:
            super().on_packet(packet)

    def receive(self, address: hci.Address, data: bytes) -> bool:
        """Hands an L2CAP frame to the kernel, if the link still exists."""
        connection = self.le_connections.get(address)
        if connection is None or self.host is None:
            return False
        return self.host.on_packet(struct.pack('<BHH', 2, connection.handle | 0x2000, len(data)) + data)

    # Scanning.

    @property
    def is_listening(self) -> bool:
        return (self.le_scan_enable or self.pending_le_connection is not None) and not self.is_hung

    def on_hci_le_set_scan_enable_command(self, command):
        if command.le_scan_enable and not self.le_scan_enable:
            self._reported.clear()
            self._deaf_until = asyncio.get_running_loop().time() + _DEAF_AFTER_SCAN_START
        return super().on_hci_le_set_scan_enable_command(command)

    def hear(self, event: AdvertisingEvent) -> None:
        """Handles an advertisement."""
        if self._reports(event):
            self._report(event.event_type, event, event.data)
            if self.le_scan_type == 1 and event.event_type == _ADV_IND:
                self._report(_SCAN_RSP, event, event.scan_response)
        if event.event_type == _ADV_IND and self._wants(event.advertiser_address):
            self._connect(event.advertiser_address)

    def _reports(self, event: AdvertisingEvent) -> bool:
        if not self.le_scan_enable or asyncio.get_running_loop().time() < self._deaf_until:
            return False
        is_filtered = self.le_scanning_filter_policy & 1
        return not is_filtered or bytes(event.advertiser_address) in self._accept_list

    def _report(self, event_type: int, event: AdvertisingEvent, data: bytes) -> None:
        """Reports an advertisement. The duplicate filter suppresses reports with the same data."""
        address = event.advertiser_address
        key = (bytes(address), event_type, data)
        if self.filter_duplicates and key in self._reported:
            return
        self._reported.add(key)
        head = struct.pack('<BBBB', 0x02, 1, event_type, address.address_type)
        self.send_event(_LE_META, head + bytes(address) + bytes([len(data)]) + data + struct.pack('b', event.rssi))

    # The accept list.

    def on_hci_le_clear_filter_accept_list_command(self, command):
        self._accept_list.clear()
        return super().on_hci_le_clear_filter_accept_list_command(command)

    def on_hci_le_add_device_to_filter_accept_list_command(self, command):
        self._accept_list.add(bytes(command.address))
        return super().on_hci_le_add_device_to_filter_accept_list_command(command)

    def on_hci_le_remove_device_from_filter_accept_list_command(self, command):
        self._accept_list.discard(bytes(command.address))
        return super().on_hci_le_remove_device_from_filter_accept_list_command(command)

    # Links.

    def on_hci_le_create_connection_command(self, command) -> None:
        if self.slots is not None and len(self.le_connections) >= self.slots:
            self._send_hci_command_status(hci.HCI_ErrorCode.CONNECTION_LIMIT_EXCEEDED_ERROR, command.op_code)
        else:
            super().on_hci_le_create_connection_command(command)

    def on_hci_le_create_connection_cancel_command(self, command):
        pending, self.pending_le_connection = self.pending_le_connection, None
        if pending is None:
            return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.COMMAND_DISALLOWED_ERROR)
        self._complete(hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, 0, pending.peer_address)
        return hci.HCI_StatusReturnParameters(hci.HCI_ErrorCode.SUCCESS)

    def _wants(self, address: hci.Address) -> bool:
        pending = self.pending_le_connection
        if pending is None:
            return False
        if pending.initiator_filter_policy == 1:
            return bytes(address) in self._accept_list
        return pending.peer_address == address

    def _connect(self, address: hci.Address) -> None:
        command, self.pending_le_connection = self.pending_le_connection, None
        if address in self.le_connections:
            return
        own = self.public_address if command.own_address_type == hci.OwnAddressType.PUBLIC else self.random_address
        connection = self.le_connections[address] = Connection(
            controller=self,
            handle=self.allocate_connection_handle(),
            role=hci.Role.CENTRAL,
            self_address=own,
            peer_address=address,
            link=self.link,
            transport=PhysicalTransport.LE,
            link_type=hci.HCI_Connection_Complete_Event.LinkType.ACL,
        )
        parameters = (command.connection_interval_max, command.max_latency, command.supervision_timeout)
        self._supervision_timeouts[bytes(address)] = command.supervision_timeout / 100
        self.send_advertising_pdu(ll.ConnectInd(own, address, *parameters))
        self._complete(hci.HCI_ErrorCode.SUCCESS, connection.handle, address, *parameters)

    def _complete(self, status: int, handle: int, address: hci.Address, interval=0, latency=0, timeout=0) -> None:
        """Sends LE Connection Complete."""
        head = struct.pack('<BBHBB', 0x01, status, handle, 0, address.address_type)
        self.send_event(_LE_META, head + bytes(address) + struct.pack('<HHHB', interval, latency, timeout, 0))

    def on_hci_le_connection_update_command(self, command) -> None:
        if connection := self.find_le_connection_by_handle(command.connection_handle):
            self._supervision_timeouts[bytes(connection.peer_address)] = command.supervision_timeout / 100
        super().on_hci_le_connection_update_command(command)

    def supervision_timeout(self, address: hci.Address) -> float:
        """The supervision timeout in seconds. The kernel asks for 420 ms."""
        return self._supervision_timeouts.get(bytes(address), 0.42)

    def lose(self, address: hci.Address) -> None:
        """Ends a link that timed out."""
        if connection := self.le_connections.get(address):
            self.on_le_disconnected(connection, hci.HCI_ErrorCode.CONNECTION_TIMEOUT_ERROR)

    def lose_later(self, address: hci.Address) -> None:
        """Ends a new link whose peripheral has left."""
        if connection := self.le_connections.get(address):
            error = hci.HCI_ErrorCode.CONNECTION_FAILED_TO_BE_ESTABLISHED_ERROR
            asyncio.get_running_loop().call_later(_ESTABLISHMENT, self.on_le_disconnected, connection, error)

    def on_hci_read_rssi_command(self, command) -> None:
        handle = struct.unpack_from('<H', command.parameters)[0]
        self.send_event(0x0E, struct.pack('<BHBHb', 1, command.op_code, 0, handle, -60))

    def on_hci_reset_command(self, command):
        self.drop_everything()
        return super().on_hci_reset_command(command)

    def drop_everything(self) -> None:
        """Removes the radio without notice: the peripherals' links time out."""
        self.pending_le_connection = None
        self.le_scan_enable = False
        self._accept_list.clear()
        for connection in self.le_connections.values():
            if (peripheral := self.link.peripheral(connection.peer_address)) is not None:
                peripheral.lose_later(self.supervision_timeout(connection.peer_address))
        self.le_connections.clear()
