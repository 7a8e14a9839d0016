"""Indications, of which only one may be unconfirmed at a time."""
from __future__ import annotations

import collections
from collections.abc import Callable


class Indications:
    """Sends PDUs one after the other. Calls `on_sent` with whether each was handed to the host."""

    def __init__(self, send: Callable[[bytes, Callable[[bool], None]], None]) -> None:
        self._send = send
        self._queue: collections.deque[tuple[bytes, Callable[[bool], None]]] = collections.deque()
        self._is_waiting = False

    def add(self, pdu: bytes, on_sent: Callable[[bool], None]) -> None:
        self._queue.append((pdu, on_sent))
        self._send_next()

    def confirmed(self) -> None:
        self._is_waiting = False
        self._send_next()

    def clear(self) -> None:
        """Drops the waiting PDUs at the end of the link."""
        self._is_waiting = False
        while self._queue:
            self._queue.popleft()[1](False)

    def _send_next(self) -> None:
        if self._queue and not self._is_waiting:
            self._is_waiting = True
            self._send(*self._queue.popleft())
