#!/usr/bin/env python3
"""Measures hand-overs of straps that walk between three gateways.

Outage: from the last value that the old gateway received to the first one of the new gateway. Decision: from the moment
at which the old gateway gives the device up to the link of the new one.
"""
import argparse
import json
import os
import pathlib
import shutil
import time

from fleetsite import ROOT, Site

GATEWAYS = ['west', 'middle', 'east']


def scenario(straps: int, timing: str, interval: str) -> str:
    """Straps that walk 40 m in 10 s and stay for 10 s."""
    text = f'timing: {timing}\nair: {{exponent: 2, sensitivity: -88, noise: 3}}\n'
    text += 'gateways: [{name: west, at: [0, 0]}, {name: middle, at: [40, 0]}, {name: east, at: [80, 0]}]\nperipherals:\n'
    for number in range(straps):
        start = 40 * (number % 3)
        places = [40 * ((number + step) % 4 if (number + step) % 4 < 3 else 1) for step in range(5)]
        times = [(20 * step, places[step]) for step in range(5)]
        way = ', '.join(f'{when}s: [{place}, 1], {when + 10}s: [{place}, 1]' for when, place in times[:-1])
        text += (f'  - {{name: strap-{number}, kind: heart-rate, address: "C0:FF:EE:00:01:{number:02X}", rate: 10, '
                 f'advertise: {{interval: {interval}}}, path: {{{way}, 80s: [{places[4]}, 1]}}}}\n')
    return text


def devices(straps: int) -> str:
    lines = [f'  - {{name: strap-{number}, address: "C0:FF:EE:00:01:{number:02X}"}}\n' for number in range(straps)]
    return 'devices:\n' + ''.join(lines)


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def summary(name: str, times: list[float]) -> str:
    if not times:
        return f'{name}: none'
    return (f'{name}: n {len(times)}, p50 {quantile(times, 0.5):.2f} s, p90 {quantile(times, 0.9):.2f} s, '
            f'p99 {quantile(times, 0.99):.2f} s, max {max(times):.2f} s')


def outages(truth: pathlib.Path, address: str) -> list[dict]:
    """The changes of gateway: the last value before, the end of the link, the link and the first value after."""
    found, last, ended, linked, gateway = [], None, None, None, None
    for line in truth.read_text().splitlines():
        event = json.loads(line)
        if event.get('dev') != address:
            continue
        if event['event'] == 'disconnect':
            ended = event
        elif event['event'] == 'connect':
            linked = event
        elif event['event'] == 'notification' and event['delivered'] and event['char'] == '2a37':
            if gateway and linked and linked['gateway'] != gateway:
                found.append({'last': last / 1e6, 'ended': ended['t'] / 1e6, 'reason': ended['reason'],
                              'linked': linked['t'] / 1e6, 'first': event['t'] / 1e6, 'from': gateway,
                              'to': linked['gateway']})
            last, gateway = event['t'], linked['gateway'] if linked else None
    return found


def decisions(site: Site, device: str) -> list[tuple[float, str]]:
    """The times at which gateways gave a device up."""
    sql = (f"SELECT ts FROM events WHERE device = '{device}' AND kind = 'link' "
           "AND json_extract(detail, '$.reason') LIKE 'owned%lsewhere' AND detail LIKE '%handed over%'")
    return [(row[0] / 1e6, gateway.name) for gateway in site.gateways for row in gateway.rows(sql)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument('--programs', type=lambda text: pathlib.Path(text).resolve(), default=ROOT / '.build/debug')
    arguments.add_argument('--straps', type=int, default=4)
    arguments.add_argument('--minutes', type=float, default=5)
    arguments.add_argument('--timing', default='realistic', help='of bluetoothd: realistic or quick')
    arguments.add_argument('--interval', default='200ms', help='of advertisements')
    arguments.add_argument('--bouncer', action='store_true', help='through PgBouncer')
    arguments.add_argument('--list', action='store_true', help='print each hand-over')
    arguments.add_argument('--keep', type=pathlib.Path, help='a new folder for the logs and files of the gateways')
    options = arguments.parse_args()
    text = scenario(options.straps, options.timing, options.interval)
    with Site(options.programs, text, GATEWAYS, devices(options.straps), bouncer=options.bouncer) as site:
        for gateway in site.gateways:
            gateway.start()
        time.sleep(options.minutes * 60)
        for gateway in site.gateways:
            gateway.stop()
        if options.keep:
            shutil.copytree(site.folder, options.keep, ignore=shutil.ignore_patterns('server', 'bouncer', '*.sock'))
        found = []
        for number in range(options.straps):
            name = f'strap-{number}'
            released = sorted(when for when, _ in decisions(site, name))
            for change in outages(site.truth, f'C0:FF:EE:00:01:{number:02X}'):
                before = [when for when in released if change['last'] < when < change['linked']]
                found.append(change | {'device': name, 'decided': before[-1] if before else None})
        if options.list:
            for change in sorted(found, key=lambda change: change['last']):
                ended = change['last']
                decided = f"{change['decided'] - ended:.2f}" if change['decided'] else '-'
                print(f"{change['device']} {change['from']}->{change['to']} {change['reason']}: "
                      f"link lost {change['ended'] - ended:.2f}, decided {decided}, linked {change['linked'] - ended:.2f}, "
                      f"value {change['first'] - ended:.2f}")
        load = os.getloadavg()[1] / (os.cpu_count() or 1)
        print(f'load of the machine in five minutes: {load:.1f} for each core')
        print(summary('outage, last value to first value', [change['first'] - change['last'] for change in found]))
        print(summary('link lost to first value', [change['first'] - change['ended'] for change in found]))
        print(summary('decision to link', [change['linked'] - change['decided'] for change in found
                                           if change['decided']]))


if __name__ == '__main__':
    main()
