"""`python3 -m peripherals payloads`: generated notifications, for comparison with the simulator."""
import os
import sys

from . import reader
from .scenario import ScenarioError


def list_payloads(path: str, numbers: list[str]) -> int:
    """Prints name, characteristic, number and octets of the notifications with these numbers. Returns the exit code."""
    try:
        peripherals = reader.read(path).peripherals
    except (ScenarioError, OSError) as error:
        print(f'peripherals: {error}', file=sys.stderr)
        return os.EX_DATAERR
    for peripheral in peripherals:
        for characteristic in [each for service in peripheral.services for each in service.characteristics]:
            if characteristic.source is not None:
                for number in map(int, numbers):
                    payload = characteristic.source(number, characteristic.value, 0)
                    print(peripheral.name, characteristic.uuid, number, payload.hex())
    return os.EX_OK
