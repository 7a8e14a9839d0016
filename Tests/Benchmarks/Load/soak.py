"""Tests whether a gateway grows under load: samples its resources and fits a line; `make soak` runs it.

    soak.py PROGRAMS [--minutes N] [--devices N] [--rate N] [--folder PATH]

The first quarter is not counted, because caches fill. A quantity grows if the line rises by more than a tenth from its start to its
end and explains more than half of the variance. The exit code is 1 if a quantity grows that must not.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

from rig import Meter, Rig, memory

COLUMNS = {
    'resident': 'MB', 'private': 'MB', 'descriptors': '', 'threads': '', 'wal': 'MB', 'undelivered': 'readings',
    'database': 'MB', 'stored': 'readings',
}
# These must not grow. The file grows until retention removes readings.
BOUNDED = ['resident', 'private', 'descriptors', 'threads', 'wal', 'undelivered']


def size(file: pathlib.Path) -> float:
    return file.stat().st_size / 1e6 if file.exists() else 0


def sample(rig: Rig, pid: int) -> dict[str, float]:
    words = [rig.programs / 'gattherd', 'status', '--json', '--config', rig.folder / 'gattherd.yaml']
    status = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    sizes = memory(pid)
    return {
        'resident': sizes['VmRSS'], 'private': sizes['RssAnon'],
        'descriptors': len(list(pathlib.Path(f'/proc/{pid}/fd').iterdir())),
        'threads': len(list(pathlib.Path(f'/proc/{pid}/task').iterdir())),
        'wal': size(rig.folder / 'history.db-wal'), 'database': size(rig.folder / 'history.db'),
        'undelivered': status['history']['undelivered'], 'stored': status['history']['seq'],
    }


def soak(options: argparse.Namespace) -> tuple[list[float], list[dict[str, float]], float]:
    """The sampling times in hours, the samples, and the CPU time per reading in µs."""
    moments, samples = [], []
    with Rig(pathlib.Path(options.programs).resolve(), options.folder, options.devices, options.rate, truth=False) as rig:
        child = rig.start_ours()
        rig.subscribe_silently()
        time.sleep(10)
        start, meter = time.monotonic(), Meter(child.pid)
        while child.poll() is None and time.monotonic() < start + options.minutes * 60:
            moments.append((time.monotonic() - start) / 3600)
            samples.append(sample(rig, child.pid))
            if len(samples) % 10 == 1:
                print('  '.join(f'{name} {value:.5g}' for name, value in samples[-1].items()), file=sys.stderr, flush=True)
            time.sleep(max(1, options.minutes * 60 / 600))
        cost = meter.read()[0] / 1000 / max(1, samples[-1]['stored'] - samples[0]['stored'])
        if child.poll() is not None:
            raise RuntimeError(f'gattherd ended: {(rig.folder / "errors").read_text()[-2000:]}')
    return moments, samples, cost


def judge(hours: list[float], values: list[float]) -> tuple[float, bool]:
    """The slope per hour, and whether it is growth rather than noise."""
    if len(set(values)) < 2:
        return 0, False
    slope, start = statistics.linear_regression(hours, values)
    rise = slope * (hours[-1] - hours[0])
    explained = statistics.correlation(hours, values) ** 2
    return slope, rise > 0.1 * max(1e-9, start + slope * hours[0]) and explained > 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs')
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--devices', type=int, default=64)
    parser.add_argument('--rate', type=float, default=50)
    parser.add_argument('--folder', default='/var/tmp')
    options = parser.parse_args()
    hours, samples, cost = soak(options)
    quarter = len(samples) // 4
    print(f'{options.devices} devices, {options.rate:g}/s each, {options.minutes:g} minutes, {cost:.1f} µs CPU per reading\n')
    print(f'{"":14}{"first":>10}{"last":>10}{"least":>10}{"most":>10}{"per hour":>12}')
    growing = []
    for name, unit in COLUMNS.items():
        values = [entry[name] for entry in samples][quarter:]
        slope, grows = judge(hours[quarter:], values)
        if grows and name in BOUNDED:
            growing.append(name)
        word = 'GROWS' if grows and name in BOUNDED else ''
        numbers = ''.join(f'{number:10.5g}' for number in (values[0], values[-1], min(values), max(values)))
        print(f'{name:14}{numbers}{slope:12.4g}  {unit} {word}')
    print(f'\n{"grows: " + ", ".join(growing) if growing else "nothing grows that must not"}')
    sys.exit(1 if growing else 0)


if __name__ == '__main__':
    main()
