"""/dev/vhci: a controller for the Linux kernel, with one HCI packet per read and write."""
from __future__ import annotations

import asyncio
import logging
import os
import struct

from .host_controller import HostController

log = logging.getLogger(__name__)

_VENDOR = 0xFF
# The longest HCI packet, except ACL data of 64 KiB, which is not sent here.
_LONGEST = 4096


class VirtualHCI:
    """Plugs a controller in. `close` removes it."""

    def __init__(self, controller: HostController, path: str = '/dev/vhci') -> None:
        self._controller = controller
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._index = asyncio.get_running_loop().create_future()
        os.write(self._descriptor, bytes([_VENDOR, 0x00]))
        controller.host = self
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    async def index(self) -> int:
        """The number in the adapter's name, hci0."""
        return await asyncio.wait_for(asyncio.shield(self._index), 5)

    def on_packet(self, packet: bytes) -> bool:
        """Hands a packet to the kernel. Returns false on failure."""
        if self._descriptor < 0 or self._controller.is_hung:
            return False
        try:
            os.write(self._descriptor, packet)
        except OSError as error:
            log.error('the kernel refuses a packet: %s', error)
            return False
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        for _ in range(32):
            try:
                packet = os.read(self._descriptor, _LONGEST)
            except BlockingIOError:
                return
            except OSError as error:
                log.error('the controller is gone: %s', error)
                self.close()
                return
            if not packet:
                return
            self._handle(packet)

    def _handle(self, packet: bytes) -> None:
        if packet[0] == _VENDOR:
            if not self._index.done():
                self._index.set_result(struct.unpack_from('<H', packet, 2)[0])
            return
        try:
            self._controller.on_packet(packet)
        except Exception:
            log.exception('a packet from the kernel: %s', packet.hex())
