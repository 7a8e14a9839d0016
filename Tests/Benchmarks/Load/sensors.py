"""A gateway between sensors that only advertise: one half are RuuviTags, the other half send BTHome."""
import pathlib
import re
import sys
from collections.abc import Iterable

from rig import Rig, address

# The number of payloads of a sensor, which take turns. Each has a counter from 0 upwards.
PAYLOADS = 250
# Advertisements per second of each sensor, at an interval of 100 ms.
RATE = 10
COUNTER = re.compile(r'"(?:measurement_sequence|packet_id)":\s?(\d+)')


class SensorRig(Rig):
    """Each sensor repeats each payload `repeats` times; bluetoothd signals all advertisements."""

    topic = 'gattherd/bench/#'
    message = re.compile(r'^(\d+\.\d+) (\d) gattherd/bench/(d\d+)/(?:ruuvi|bthome) \[?{')

    def __init__(self, programs: pathlib.Path, folder: str, sensors: int, repeats: int):
        self.half, self.repeats = sensors // 2, repeats
        super().__init__(programs, folder, sensors, RATE, truth=False)

    def scenario(self) -> list[str]:
        ruuvi = [f'0512fc5394c37c0004fffc040cac3642{number:04x}c0ffee000001' for number in range(PAYLOADS)]
        bthome = [f'4000{number:02x}01640209{number % 16:02x}03bf13' for number in range(PAYLOADS)]
        return [
            'timing: quick',
            'peripherals:',
            self.beacons(1, self.half, f'manufacturer_data: {{0x0499: [{", ".join(ruuvi)}]}}'),
            self.beacons(self.half + 1, self.devices - self.half, f'service_data: {{fcd2: [{", ".join(bthome)}]}}'),
        ]

    def beacons(self, first: int, count: int, data: str) -> str:
        turn = f'interval: {1000 // RATE}ms, turn: {self.repeats * 1000 // RATE}ms'
        return (
            f'  - {{name: d{first}, kind: beacon, address: "{address(first)}", count: {count}, '
            f'advertise: {{connectable: false, {turn}, {data}}}}}'
        )

    def device(self, number: int) -> str:
        profile = 'ruuvitag' if number <= self.half else 'bthome'
        return f'  - {{name: d{number}, address: "{address(number)}", profiles: [{profile}]}}'

    def counts(self) -> dict[str, list[tuple[float, int]]]:
        """The receive times and counters of the readings of each sensor."""
        counts = {f'd{number}': [] for number in range(1, self.devices + 1)}
        with open(self.folder / 'received') as file:
            for line in file:
                if (match := self.message.match(line)) and match[2] == '0':
                    counts[match[3]] += [(float(match[1]), int(count)) for count in COUNTER.findall(line)]
        return counts


def steps(readings: Iterable[tuple[float, int]]) -> list[int]:
    """The increments of a counter between readings; 1 unless readings are missing. Repeated messages have none.

    >>> steps([(0.0, 248), (0.1, 249), (0.1, 249), (0.2, 0), (0.4, 2)])
    [1, 1, 2]
    """
    numbers = [number for _, number in readings]
    return [step for before, after in zip(numbers, numbers[1:]) if (step := (after - before) % PAYLOADS)]


if __name__ == '__main__':
    import doctest
    sys.exit(doctest.testmod().failed != 0)
