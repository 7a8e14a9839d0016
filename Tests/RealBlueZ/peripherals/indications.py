"""Indications, of which only one at a time may be without its confirmation."""
from __future__ import annotations

import collections
from collections.abc import Callable


class Indications:
    """Sends PDUs one after the other; `told` hears whether each was handed to the host."""

    def __init__(self, send: Callable[[bytes, Callable[[bool], None]], None]) -> None:
        self._send = send
        self._queue: collections.deque[tuple[bytes, Callable[[bool], None]]] = collections.deque()
        self._is_waiting = False

    def add(self, pdu: bytes, told: Callable[[bool], None]) -> None:
        self._queue.append((pdu, told))
        self._send_next()

    def confirmed(self) -> None:
        self._is_waiting = False
        self._send_next()

    def clear(self) -> None:
        """The link is gone, and with it what waits."""
        self._is_waiting = False
        while self._queue:
            self._queue.popleft()[1](False)

    def _send_next(self) -> None:
        if self._queue and not self._is_waiting:
            self._is_waiting = True
            self._send(*self._queue.popleft())
