"""A real Home Assistant sees what gattherd publishes.

    test_homeassistant.py PROGRAMS HASS

PROGRAMS is the folder of gattherd and gattherd-sim, HASS the program of Home Assistant.
"""
import json
import pathlib
import random
import sys
import tempfile
import time
import unittest

from gateway import DEVICES, Gateway
from homeassistant import HomeAssistant, free_port, rfc3339, wait

PROGRAMS, HASS = (pathlib.Path(word).absolute() for word in sys.argv[1:3])

# Entities, and the stream and metric that they show.
NUMBERS = {
    'sensor.chest_strap_heart_rate': ('strap', 'heart_rate', 'heart_rate'),
    'sensor.chest_strap_rr_interval': ('strap', 'heart_rate', 'rr_interval'),
    'sensor.chest_strap_energy_expended': ('strap', 'heart_rate', 'energy_expended'),
    'sensor.chest_strap_battery_level': ('strap', 'battery', 'battery_level'),
    'sensor.weather_temperature': ('weather', 'temperature', 'temperature'),
    'sensor.weather_humidity': ('weather', 'humidity', 'humidity'),
    'sensor.weather_pressure': ('weather', 'pressure', 'pressure'),
    'sensor.door_battery_level': ('door', 'bthome', 'battery_level'),
}
# Log lines of an installation without a camera, a frontend's compression and so on, and of a removal that comes twice.
HARMLESS = [
    'No device components to cleanup',
    'Skipping pip', 'zlib_ng', 'libturbojpeg', 'Traceback', 'turbojpeg', 'custom integration',
]


class HomeAssistantTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix='gattherd-home-')))
        (folder / 'gateway').mkdir()
        port = free_port()
        cls.gateway = cls.enterClassContext(Gateway(PROGRAMS, folder / 'gateway', port, HomeAssistant.bearer()))
        cls.home = cls.enterClassContext(HomeAssistant(HASS, folder / 'home', cls.gateway.broker_port, port))
        cls.expect('sensor.chest_strap_connection', 'ready')
        cls.expect('sensor.weather_connection', 'ready')

    @classmethod
    def expect(cls, entity: str, state: str) -> None:
        """Waits until the entity has this state."""
        def probe() -> bool:
            cls.seen = cls.home.state(entity)
            return cls.seen == state
        try:
            wait(probe, entity)
        except AssertionError:
            raise AssertionError(f'{entity} is {cls.seen}, not {state}; there are {sorted(cls.home.states())}') from None

    def test_entities_have_the_published_values(self) -> None:
        self.gateway.freeze()
        self.addCleanup(self.gateway.thaw)
        for entity, (device, stream, metric) in NUMBERS.items():
            with self.subTest(entity):
                def agrees() -> bool:
                    value = self.gateway.reading(device, stream)[metric]
                    value = value[-1] if isinstance(value, list) else value
                    state = self.home.state(entity)
                    self.pair = (state, value)
                    return state not in (None, 'unknown', 'unavailable') and float(state) == float(value)
                wait(agrees, entity, 20)

    def test_booleans_are_binary_sensors(self) -> None:
        self.expect('binary_sensor.chest_strap_sensor_contact', 'on')
        self.expect('binary_sensor.door_battery_low', 'off')
        for state in ['on', 'off']:
            self.expect('binary_sensor.door_window', state)
        self.assertEqual(self.home.states()['binary_sensor.door_window']['attributes']['device_class'], 'window')

    def test_a_button_is_an_event(self) -> None:
        for kind in ['press', 'double_press']:
            wait(lambda: self.home.states()['event.door_button']['attributes'].get('event_type') == kind, kind)

    def test_a_device_has_one_battery(self) -> None:
        batteries = [
            name for name, state in self.home.states().items()
            if 'door' in name and state['attributes'].get('device_class') == 'battery'
        ]
        self.assertEqual(batteries, ['sensor.door_battery_level'])

    def test_alerts_are_binary_sensors(self) -> None:
        self.expect('binary_sensor.weather_alert_battery_low', 'on')
        self.expect('binary_sensor.chest_strap_alert_battery_low', 'off')
        self.assertNotIn('binary_sensor.dial_alert_battery_low', self.home.states())

    def test_facts_and_place_of_a_device_are_known(self) -> None:
        entity = 'sensor.chest_strap_heart_rate'
        expected = {
            'manufacturer': 'Acme', 'model': 'HR-1', 'hw_version': 'B', 'sw_version': '1.0', 'serial_number': '007',
            'name': 'Chest strap',
        }
        for attribute, value in expected.items():
            wait(lambda: self.home.device(entity, attribute) == value, attribute)
        self.assertEqual(self.home.template(f"{{{{ area_name('{entity}') }}}}"), 'Gym')

    def test_the_gateway_is_a_device(self) -> None:
        self.expect('binary_sensor.gattherd_attic_connection', 'on')
        self.expect('sensor.gattherd_attic_backlog', '0')
        self.expect('sensor.gattherd_attic_ready_devices', '4')
        self.expect('binary_sensor.gattherd_attic_output_behind', 'off')
        gateway = 'sensor.gattherd_attic_version'
        self.assertEqual(self.home.device(gateway, 'sw_version'), self.home.state(gateway))
        url = f'http://attic.lan:{self.gateway.http_port}/'
        self.assertEqual(self.home.device(gateway, 'configuration_url'), url)
        via = self.home.device('sensor.weather_temperature', 'via_device_id')
        self.assertEqual(via, self.home.template(f"{{{{ device_id('{gateway}') }}}}"))

    def test_the_switch_disconnects_and_connects(self) -> None:
        self.home.call('switch/turn_off', 'switch.dial_link')
        self.expect('switch.dial_link', 'off')
        self.expect('sensor.dial_connection', 'held')
        self.home.call('switch/turn_on', 'switch.dial_link')
        self.expect('sensor.dial_connection', 'ready')
        self.expect('switch.dial_link', 'on')
        self.assertNotIn('switch.door_link', self.home.states())

    def test_a_control_is_set(self) -> None:
        self.home.call('number/set_value', 'number.dial_number', value=77)
        self.expect('number.dial_number', '77')

    def test_a_killed_daemon_is_unavailable_until_it_is_back(self) -> None:
        self.gateway.kill()
        self.addCleanup(lambda: self.expect('sensor.weather_connection', 'ready'))
        try:
            for entity in ['sensor.weather_temperature', 'sensor.weather_connection', 'sensor.gattherd_attic_backlog']:
                self.expect(entity, 'unavailable')
            self.expect('binary_sensor.gattherd_attic_connection', 'off')
            self.home.restart()
            self.expect('sensor.weather_temperature', 'unavailable')
        finally:
            self.gateway.start()
        self.expect('binary_sensor.gattherd_attic_connection', 'on')
        wait(lambda: self.home.state('sensor.weather_temperature') not in ('unavailable', 'unknown'), 'the temperature')

    def test_a_removed_device_disappears(self) -> None:
        self.addCleanup(lambda: self.expect('sensor.dial_connection', 'ready'))
        self.addCleanup(lambda: self.gateway.reload(DEVICES))
        self.gateway.reload({name: line for name, line in DEVICES.items() if name != 'dial'})
        wait(lambda: not any('dial' in name for name in self.home.states()), 'the removal')
        topics = self.gateway.retained('homeassistant/#')
        self.assertFalse([topic for topic in topics if 'c0ffee000010' in topic])
        self.assertIn('sensor.weather_temperature', self.home.states())

    def test_a_renamed_device_keeps_its_entities(self) -> None:
        entity = 'sensor.weather_temperature'
        before = self.home.template(f"{{{{ device_id('{entity}') }}}}")
        self.addCleanup(lambda: self.home.state(entity))
        renamed = DEVICES | {'weather': DEVICES['weather'].replace('weather', 'roof')}
        for devices, name in [(renamed, 'roof'), (DEVICES, 'weather')]:
            self.gateway.reload(devices)
            wait(lambda: self.home.device(entity, 'name') == name, f'the name {name}')
            wait(lambda: self.home.state(entity) not in ('unavailable', 'unknown', None), 'the temperature')
            self.assertEqual(self.home.template(f"{{{{ device_id('{entity}') }}}}"), before)
            gone = 'weather' if name == 'roof' else 'roof'
            wait(lambda: not self.gateway.retained(f'gattherd/attic/{gone}/#'), 'the old topics')

    def test_statistics_after_an_outage_equal_the_hours_of_history(self) -> None:
        entity = 'sensor.weather_temperature'
        end = int(time.time()) // 3600 * 3600 - 3600
        start, middle = end - 6 * 3600, end - 3 * 3600
        # Home Assistant has wrong statistics of the first hour, for example from values that came late.
        metadata = {'has_mean': True, 'has_sum': False, 'name': None, 'source': 'recorder', 'statistic_id': entity,
                    'unit_of_measurement': '°C'}
        self.home.ask('recorder/import_statistics', metadata=metadata, stats=[{'start': rfc3339(start), 'mean': 99.0}])
        self.gateway.stop()
        self.addCleanup(lambda: self.expect('sensor.weather_connection', 'ready'))
        try:
            self.gateway.command('import', '-', text=''.join(self.samples(start, end)))
            (self.gateway.folder / 'home-assistant-statistics').write_text(rfc3339(middle))
        finally:
            self.gateway.start()
        expected = self.gateway.hours('weather', 'temperature', start, end)
        self.assertEqual([row[0] for row in expected], list(range(start, end, 3600)))
        self.await_statistics(entity, middle, end, expected[3:])
        self.assertEqual(self.home.statistics(entity, start, middle), [(start, None, 99.0, None)])
        times = ['--since', rfc3339(start), '--until', rfc3339(middle)]
        self.assertRegex(self.gateway.command('homeassistant', 'statistics', *times), r': 3 hours of 1 entities imported')
        self.await_statistics(entity, start, end, expected)

    @staticmethod
    def samples(start: int, end: int) -> list[str]:
        """Temperatures as JSON lines, one every five minutes."""
        series = {'device': 'weather', 'profile': 'environmental-sensing', 'stream': 'temperature',
                  'metric': 'temperature', 'unit': '°C', 'kind': 'gauge'}
        return [json.dumps(series | {'ts': seconds * 1000000, 'value': round(random.uniform(-20, 40), 2)}) + '\n'
                for seconds in range(start, end, 300)]

    def await_statistics(self, entity: str, start: int, end: int, expected: list[tuple]) -> None:
        def rounded(rows: list[tuple]) -> list[tuple]:
            return [tuple(value and round(value, 6) for value in row) for row in rows]

        def agrees() -> bool:
            self.pair = (rounded(self.home.statistics(entity, start, end)), rounded(expected))
            return self.pair[0] == self.pair[1]
        try:
            wait(agrees, entity, 30)
        except AssertionError:
            self.assertEqual(*self.pair)

    def test_zz_nothing_is_logged(self) -> None:
        self.assertEqual([line for line in self.home.complaints if not any(each in line for each in HARMLESS)], [])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
