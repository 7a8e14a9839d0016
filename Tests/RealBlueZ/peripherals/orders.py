"""Orders: changes of a running scenario, with the simulator's words and some more."""
from __future__ import annotations

import asyncio
import os

from . import values
from .neighbourhood import Neighbourhood
from .peripheral import Peripheral
from .recorder import Recorder


class OrderError(Exception):
    """The reason why an order was refused."""


class Orders:
    """Performs orders: a verb and words."""

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self._neighbourhood = neighbourhood
        self._verbs = {
            'status': (0, 0, self._status),
            'drop': (1, 1, lambda name: self._linked(name).drop()),
            'vanish': (1, 1, lambda name: self._peripheral(name).vanish()),
            'appear': (1, 1, lambda name: self._peripheral(name).appear()),
            'silence': (1, 2, self._silence),
            'rate': (2, 2, lambda name, rate: self._peripheral(name).set_rate(_value(values.rate, rate))),
            'notify': (3, None, self._notify),
            'unplug': (1, 1, self._unplug),
            'plug': (1, 1, self._plug),
            'change-services': (1, None, self._change_services),
            'hide-services': (1, None, self._hide_services),
            'slow': (2, 2, self._slow),
            'refuse': (1, 2, self._refuse),
            'hang': (2, 2, self._hang),
            'burst': (2, 2, self._burst),
            'forget': (1, 1, lambda name: self._peripheral(name).forget()),
            'advertise': (2, 2, self._advertise),
            'latency': (1, 1, self._latency),
            'set-clock': (2, 2, self._set_clock),
            'reset-records': (1, 1, lambda name: self._recorder(name).reset()),
        }

    async def perform(self, words: list[str]) -> list[str]:
        """Performs an order and returns the lines of its answer. Raises OrderError."""
        if not words or words[0] not in self._verbs:
            raise OrderError(f"there is no order '{words[0] if words else ''}'")
        fewest, most, carry_out = self._verbs[words[0]]
        if not fewest <= len(words) - 1 <= (1000 if most is None else most):
            raise OrderError(f"'{words[0]}' does not take {len(words) - 1} words")
        answer = carry_out(*words[1:])
        if asyncio.iscoroutine(answer):
            answer = await answer
        self._neighbourhood.truth.flush()
        return answer or []

    def _peripheral(self, name: str) -> Peripheral:
        for peripheral in self._neighbourhood.peripherals:
            if name == peripheral.spec.name or name.upper() == peripheral.spec.address:
                return peripheral
        raise OrderError(f"there is no peripheral '{name}' in the scenario")

    def _linked(self, name: str) -> Peripheral:
        peripheral = self._peripheral(name)
        if not peripheral.is_connected:
            raise OrderError(f"'{name}' is not connected")
        return peripheral

    def _recorder(self, name: str) -> Recorder:
        if (recorder := self._peripheral(name).recorder) is None:
            raise OrderError(f"'{name}' stores no records")
        return recorder

    def _check_adapter(self, name: str) -> None:
        if name != self._neighbourhood.adapter.name:
            raise OrderError(f"there is no adapter '{name}' in the scenario")

    def _status(self) -> list[str]:
        return [peripheral.status() for peripheral in self._neighbourhood.peripherals]

    def _silence(self, name: str, what: str = 'notifications') -> None:
        self._peripheral(name).silence = _value(values.word('off', 'notifications', 'all'), what)

    def _notify(self, name: str, uuid: str, *octets: str) -> None:
        peripheral, payload = self._linked(name), _value(values.octets, ' '.join(octets))
        if not peripheral.notify(_value(values.uuid, uuid), payload):
            raise OrderError(f"'{name}' has no characteristic {uuid}")

    def _unplug(self, name: str) -> None:
        self._check_adapter(name)
        self._neighbourhood.unplug()

    async def _plug(self, name: str) -> None:
        self._check_adapter(name)
        await self._neighbourhood.plug()

    def _change_services(self, name: str, *uuids: str) -> None:
        self._peripheral(name).change_services({_value(values.uuid, uuid) for uuid in uuids})

    def _hide_services(self, name: str, *uuids: str) -> None:
        self._peripheral(name).hide_services({_value(values.uuid, uuid) for uuid in uuids})

    def _slow(self, name: str, latency: str) -> None:
        self._peripheral(name).att_latency = _number(latency, 'seconds')

    def _refuse(self, name: str, count: str = '1') -> None:
        self._peripheral(name).refusals = _value(values.integer(0, 1_000_000), count)

    def _burst(self, name: str, count: str) -> None:
        self._linked(name).burst(_value(values.integer(1, 100_000), count))

    def _advertise(self, name: str, word: str) -> None:
        self._peripheral(name).allow_advertising(_value(values.boolean, word))

    def _hang(self, name: str, word: str) -> None:
        self._check_adapter(name)
        self._neighbourhood.hang(_value(values.boolean, word))

    def _set_clock(self, name: str, seconds: str) -> None:
        error = _value(values.integer(-2_000_000_000, 2_000_000_000), seconds)
        self._recorder(name).records.set_clock(error)

    def _latency(self, latency: str) -> None:
        self._neighbourhood.air.latency = _number(latency, 'milliseconds') / 1000


def _value(parse, text: str):
    try:
        return parse(text)
    except ValueError as error:
        raise OrderError(f"'{text}' is not {error}") from None


def _number(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 3600:
        raise OrderError(f"'{text}' is not a number of {unit}")
    return number


class OrderServer:
    """Accepts orders at a socket: one line of words, answered by `ok` and lines, or by `error` and the reason."""

    def __init__(self, orders: Orders, path: str) -> None:
        self._orders = orders
        self._path = path

    async def start(self) -> None:
        if os.path.exists(self._path):
            os.unlink(self._path)
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            words = (await reader.readline()).decode(errors='replace').split()
            lines = ['ok'] + await self._orders.perform(words)
        except OrderError as error:
            lines = [f'error {error}']
        except ConnectionError:
            lines = []
        writer.write(''.join(line + '\n' for line in lines).encode())
        writer.close()
