"""The downloads from a peripheral with stored records, and the cuts of its link."""
from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from .gatt_table import Characteristic, GattTable
from .records import Records, RecordsSpec, Transfer

# Seconds between two groups of records.
_PAUSE = 0.01


class Recorder:
    """Sends records in groups, and ends the link after a random number of PDUs in both directions."""

    def __init__(
        self,
        spec: RecordsSpec,
        table: GattTable,
        notify: Callable[[Characteristic, bytes], None],
        cut: Callable[[], None],
    ) -> None:
        self.records = Records(spec)
        self._spec = spec
        self._parts = {each.spec.role: each for each in table.characteristics}
        self._notify = notify
        self._cut = cut
        self._transfer = Transfer(self.records)
        self._timer: asyncio.TimerHandle | None = None
        self._until_cut = self._next_cut()

    def _next_cut(self) -> int | None:
        return random.randint(*self._spec.cut) if self._spec.cut else None

    def is_cut(self) -> bool:
        """Counts a PDU. Returns true if it is not sent, because the link ends instead."""
        if self._until_cut is None:
            return False
        self._until_cut -= 1
        if self._until_cut > 0:
            return False
        self._until_cut = self._next_cut()
        self._cut()
        return True

    def error(self, request: bytes) -> int | None:
        """The ATT error for a request; None if it is accepted."""
        if not self._parts['control'].indicates:
            # Client Characteristic Configuration Descriptor Improperly Configured.
            return 0xFD
        # Procedure Already in Progress.
        return 0xFE if self._transfer.is_refused(request) else None

    def request(self, request: bytes) -> None:
        """Answers a request after the response to its write."""
        self.cancel()
        self._transfer.request(request)
        self._schedule()

    def reset(self) -> None:
        self.records.reset()
        self.cancel()

    def cancel(self) -> None:
        """Ends the transfer, at the end of the link."""
        self._transfer.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._send_group)

    def _send_group(self) -> None:
        for _ in range(max(1, int(self._spec.speed * _PAUSE))):
            # The link may have been cut by the value before.
            if not self._transfer.is_active:
                return
            value, is_last = self._transfer.next()
            self._notify(self._parts['control' if is_last else 'values'], value)
        self._schedule()
