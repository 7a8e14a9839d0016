"""A plain collector in Python: bleak, paho-mqtt and sqlite3 collect heart rates.

    collector.py BROKER_PORT DATABASE [--socket] NAME=ADDRESS…

Each notification is published with QoS 1 as it comes and stored; a commit, on the disk as gattherd's are, comes ten times a
second. Unlike gattherd it keeps nothing for a broker that is away, and publishes what may not be stored yet. The bus is
DBUS_SYSTEM_BUS_ADDRESS; the values come by signals, with --socket from notification sockets.
"""
import asyncio
import datetime
import json
import sqlite3
import sys

from bleak import BleakClient, BleakScanner
from paho.mqtt import client as mqtt

MEASUREMENT = '00002a37-0000-1000-8000-00805f9b34fb'
SCHEMA = 'CREATE TABLE sample (seq INTEGER PRIMARY KEY, ts INTEGER, device TEXT, metric TEXT, value REAL)'


def heart_rate(payload: bytearray) -> int:
    return int.from_bytes(payload[1:3], 'little') if payload[0] & 1 else payload[1]


class Collector:
    def __init__(self, port: int, database: str, *, socket: bool):
        self.notify = {'use_start_notify': not socket}
        self.history = sqlite3.connect(database)
        self.history.executescript(f'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {SCHEMA}')
        self.rows = []
        self.seq = 0
        self.broker = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.broker.max_queued_messages_set(0)
        self.broker.connect('127.0.0.1', port)
        self.broker.loop_start()

    def take(self, device: str, payload: bytearray) -> None:
        self.seq += 1
        now = datetime.datetime.now(datetime.timezone.utc)
        value = heart_rate(payload)
        self.rows.append((self.seq, int(now.timestamp() * 1e6), device, 'heart_rate', value))
        reading = {'seq': self.seq, 'ts': now.isoformat(), 'source': 'notify', 'heart_rate': value}
        self.broker.publish(f'gattherd/bench/{device}/heart_rate', json.dumps(reading), qos=1)

    async def commit(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            if self.rows:
                self.history.executemany('INSERT INTO sample VALUES (?, ?, ?, ?, ?)', self.rows)
                self.history.commit()
                self.rows.clear()

    async def collect(self, devices: dict[str, str]) -> None:
        found = asyncio.Queue()
        waiting = dict((address, name) for name, address in devices.items())

        def advertised(device, _) -> None:
            if name := waiting.pop(device.address, None):
                found.put_nowait((name, device))

        commits = asyncio.create_task(self.commit())
        clients = []
        async with BleakScanner(advertised):
            for _ in devices:
                name, device = await found.get()
                client = BleakClient(device)
                await client.connect()
                clients.append(client)
                await client.start_notify(MEASUREMENT, lambda _, payload, name=name: self.take(name, payload), bluez=self.notify)
        await commits


if __name__ == '__main__':
    words = [word for word in sys.argv[1:] if word != '--socket']
    devices = dict(word.split('=') for word in words[2:])
    asyncio.run(Collector(int(words[0]), words[1], socket='--socket' in sys.argv).collect(devices))
