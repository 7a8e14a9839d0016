"""python3 -m peripherals; see USAGE."""
import os
import sys

USAGE = """\
Virtual BLE peripherals for a real bluetoothd.

Usage: python3 -m peripherals run [--truth FILE] [--orders SOCKET] SCENARIO
       python3 -m peripherals ctl --orders SOCKET ORDER ...
       python3 -m peripherals payloads SCENARIO NUMBER ...

run   Plugs a virtual adapter in and lets the peripherals of SCENARIO (YAML) advertise, until SIGTERM or
      SIGINT. Prints `ready hci0` when everything is there.
ctl   Changes a running neighbourhood. Exit code 65 when the order makes no sense.
payloads
      Prints what the notifications with these numbers would contain.

Orders as gattherd-sim has them:
  status                     drop P          vanish P            appear P
  silence P [notifications|all|off]          rate P HZ           notify P CHARACTERISTIC HEX
  unplug hci0                plug hci0       change-services P [UUID ...]
  hide-services P [UUID ...]
Orders for the radio:
  slow P SECONDS             each ATT answer takes so long
  refuse P [N]               the next N links are ended right after they were made (0x3E)
  burst P N                  N notifications at once of each characteristic
  forget P                   it loses its bonds
  advertise P on|off         while not connected
  hang hci0 on|off           the adapter's firmware neither takes nor gives anything
  latency MILLISECONDS       of every PDU on the air
Orders for recorders, also as gattherd-sim has them:
  set-clock P SECONDS        sets the clock ahead of the right time
  reset-records P            it loses its records and counts from 0
"""


def main(words: list[str]) -> int:
    options = {}
    while len(words) > 2 and words[1].startswith('--'):
        options[words[1]] = words[2]
        words = words[:1] + words[3:]
    unknown = set(options) - {'--truth', '--orders'}
    if words[:1] == ['ctl'] and len(words) > 1 and '--orders' in options and not unknown:
        from .control import control
        return control(options['--orders'], words[1:])
    if words[:1] == ['run'] and len(words) == 2 and not unknown:
        from .program import run
        return run(words[1], options.get('--truth'), options.get('--orders'))
    if words[:1] == ['payloads'] and len(words) > 2 and not options:
        from .listing import list_payloads
        return list_payloads(words[1], words[2:])
    is_help = words[:1] in (['help'], ['--help'], ['-h'])
    print(USAGE, end='', file=sys.stdout if is_help else sys.stderr)
    return os.EX_OK if is_help else os.EX_USAGE


sys.exit(main(sys.argv[1:]))
