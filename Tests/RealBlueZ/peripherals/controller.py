"""bumble's controllers and hosts, adapted to behave like small real ones and to log less."""
from __future__ import annotations

import asyncio
import logging
import struct

from bumble import hci, ll
from bumble.controller import Controller
from bumble.host import Host

log = logging.getLogger(__name__)

# Commands with handlers in bumble that a 4.2 controller does not have.
_NEWER = (
    hci.HCI_LE_READ_BUFFER_SIZE_V2_COMMAND, hci.HCI_LE_READ_TRANSMIT_POWER_COMMAND,
    hci.HCI_LE_SET_PRIVACY_MODE_COMMAND, hci.HCI_LE_SET_DEFAULT_PHY_COMMAND, hci.HCI_LE_READ_PHY_COMMAND,
)
# Commands that work although bumble does not announce them.
_UNCLAIMED = {
    hci.HCI_LE_CREATE_CONNECTION_COMMAND, hci.HCI_LE_CREATE_CONNECTION_CANCEL_COMMAND, hci.HCI_READ_RSSI_COMMAND,
}


def _has_handler(code: int) -> bool:
    return hasattr(Controller, 'on_' + hci.HCI_Command.command_name(code).lower())


class SmallController(Controller):
    """A 4.2 LE controller: legacy advertising and scanning, data length extension, 251-octet packets."""

    le_acl_data_packet_length = acl_data_packet_length = 251
    total_num_le_acl_data_packets = 32
    total_num_acl_data_packets = 0
    supported_max_tx_octets = supported_max_rx_octets = 251
    supported_max_tx_time = supported_max_rx_time = 2120
    hci_version = lmp_version = 8
    le_features = (
        hci.LeFeatureMask.LE_ENCRYPTION
        | hci.LeFeatureMask.PERIPHERAL_INITIATED_FEATURE_EXCHANGE
        | hci.LeFeatureMask.LE_DATA_PACKET_LENGTH_EXTENSION
    )
    supported_commands = {
        code for code in Controller.supported_commands if code not in _NEWER and _has_handler(code)
    } | _UNCLAIMED

    def on_hci_packet(self, packet: hci.HCI_Packet) -> None:
        """Like bumble's, without formatting every packet for an unused log."""
        match packet:
            case hci.HCI_Command():
                self.on_hci_command_packet(packet)
            case hci.HCI_AclDataPacket():
                self.on_hci_acl_data_packet(packet)

    def send_hci_packet(self, packet: hci.HCI_Packet) -> None:
        if self.host:
            asyncio.get_running_loop().call_soon(self.host.on_packet, bytes(packet))

    def on_hci_command_packet(self, command: hci.HCI_Command) -> None:
        """Answers every command, including those that bumble does not know or fails on."""
        if getattr(self, f'on_{command.name.lower()}', None) is None:
            log.info('%s: unsupported %s', self.name, command.name)
            self._refuse(command, hci.HCI_ErrorCode.UNKNOWN_HCI_COMMAND_ERROR)
            return
        try:
            super().on_hci_command_packet(command)
        except Exception:
            log.exception('%s: %s', self.name, command.name)
            self._refuse(command, hci.HCI_ErrorCode.UNSPECIFIED_ERROR)

    def _refuse(self, command: hci.HCI_Command, error: int) -> None:
        self.send_event(0x0F, struct.pack('<BBH', error, 1, command.op_code))

    def send_event(self, code: int, parameters: bytes) -> None:
        if self.host:
            packet = bytes([0x04, code, len(parameters)]) + parameters
            asyncio.get_running_loop().call_soon(self.host.on_packet, packet)

    def on_hci_disconnect_command(self, command: hci.HCI_Disconnect_Command) -> None:
        """Reports the reason "terminated by local host" to the side that asked."""
        connection = self.find_le_connection_by_handle(command.connection_handle)
        if connection is None:
            self._refuse(command, hci.HCI_ErrorCode.UNKNOWN_CONNECTION_IDENTIFIER_ERROR)
            return
        self._send_hci_command_status(hci.HCI_COMMAND_STATUS_PENDING, command.op_code)
        self.terminate(connection, command.reason)

    def terminate(self, connection, reason: int) -> None:
        connection.send_ll_control_pdu(ll.TerminateInd(reason))
        self.on_le_disconnected(connection, hci.HCI_ErrorCode.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)

    def on_le_disconnected(self, connection, reason: int) -> None:
        if self.le_connections.get(connection.peer_address) is connection:
            super().on_le_disconnected(connection, reason)


class QuietHost(Host):
    """The host of a peripheral. Like bumble's, without formatting packets for an unused log."""

    def send_hci_packet(self, packet: hci.HCI_Packet) -> None:
        if self.hci_sink:
            self.hci_sink.on_packet(bytes(packet))

    def on_hci_packet(self, packet: hci.HCI_Packet) -> None:
        match packet:
            case hci.HCI_Event():
                self.on_hci_event_packet(packet)
            case hci.HCI_AclDataPacket():
                self.on_hci_acl_data_packet(packet)
