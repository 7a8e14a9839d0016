"""`python3 -m peripherals run`."""
import asyncio
import logging
import os
import signal
import sys

from . import reader
from .neighbourhood import Neighbourhood
from .orders import Orders, OrderServer
from .scenario import ScenarioError
from .truth import TruthLog

# Seconds between writes of the truth.
_FLUSH_INTERVAL = 0.2


def run(path: str, truth: str | None, orders: str | None) -> int:
    """Runs a scenario until a signal arrives. Returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format='%(asctime)s %(name)s %(levelname)s %(message)s')
    try:
        asyncio.run(_run(reader.read(path), TruthLog(truth), orders))
    except ScenarioError as error:
        print(f'peripherals: invalid scenario: {error}', file=sys.stderr)
        return os.EX_DATAERR
    except OSError as error:
        print(f'peripherals: {error}', file=sys.stderr)
        return os.EX_UNAVAILABLE
    return os.EX_OK


async def _run(scenario, truth: TruthLog, orders: str | None) -> None:
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    neighbourhood = Neighbourhood(scenario, truth)
    await neighbourhood.start()
    if orders is not None:
        server = OrderServer(Orders(neighbourhood), orders)
        await server.start()
    print(f'ready {scenario.adapter.name}', flush=True)
    while not end.is_set():
        truth.flush()
        try:
            await asyncio.wait_for(end.wait(), _FLUSH_INTERVAL)
        except TimeoutError:
            pass
    neighbourhood.unplug()
    truth.flush()
