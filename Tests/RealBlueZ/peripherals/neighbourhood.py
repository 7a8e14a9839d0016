"""The radio, the host's controller and the peripherals."""
from __future__ import annotations

import asyncio

from .air import Air
from .host_controller import HostController
from .peripheral import Peripheral
from .scenario import Scenario
from .truth import TruthLog
from .vhci import VirtualHCI


class Neighbourhood:
    def __init__(self, scenario: Scenario, truth: TruthLog) -> None:
        self.adapter = scenario.adapter
        self.truth = truth
        self.air = Air()
        self.peripherals = [
            Peripheral(spec, index, self.air, truth) for index, spec in enumerate(scenario.peripherals)
        ]
        self._hci: VirtualHCI | None = None

    async def start(self) -> None:
        """Starts everything. Returns when the peripherals advertise and the adapter exists."""
        await asyncio.gather(*(peripheral.start() for peripheral in self.peripherals))
        if self.adapter.is_present:
            await self.plug()

    async def plug(self) -> None:
        if self._hci is not None:
            return
        controller = HostController('host', self.air, self.adapter.address, self.adapter.slots)
        self._hci = VirtualHCI(controller)
        self.air.adapter_name = f'hci{await self._hci.index()}'
        self.air.host = controller

    def unplug(self) -> None:
        if self._hci is None:
            return
        controller, self.air.host = self.air.host, None
        controller.drop_everything()
        self.air.remove_controller(controller)
        self._hci.close()
        self._hci = None

    def hang(self, is_hung: bool) -> None:
        """Hangs the adapter's firmware, or lets it continue."""
        if self.air.host is not None:
            self.air.host.is_hung = is_hung
