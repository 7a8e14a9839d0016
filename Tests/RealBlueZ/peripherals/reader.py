"""Reads scenarios, like Sources/Tools/GattherdSimulator/Scenario/ScenarioReader.swift.

What only a simulator can decide (latencies inside bluetoothd, whether a signal is sent) is accepted and has no
effect. What cannot be carried out here is an error.
"""
import dataclasses

import yaml

from . import payloads, services, values
from .fields import Fields
from .records import RecordsSpec
from .scenario import AdapterSpec, AdvertisingSpec, PeripheralSpec, Scenario, ScenarioError


def read(path: str) -> Scenario:
    """Reads the scenario in a file; raises ScenarioError, or OSError if it cannot be read."""
    with open(path, encoding='utf-8') as file:
        try:
            root = yaml.load(file, Loader=yaml.CBaseLoader) or {}
        except yaml.YAMLError as error:
            raise ScenarioError(f'{path}: {error}') from None
    fields = Fields(root, path)
    fields.node('timing')
    adapters = fields.list('adapters') or [{}]
    if len(adapters) != 1:
        raise ScenarioError(f'{path}: the machine has one adapter, not {len(adapters)}')
    adapter = _adapter(adapters[0])
    peripherals = [spec for node in fields.list('peripherals') or [] for spec in _peripherals(node, adapter)]
    fields.finish()
    _check_uniqueness(peripherals)
    return Scenario(adapter, peripherals)


def _check_uniqueness(peripherals: list[PeripheralSpec]) -> None:
    names = [spec.name for spec in peripherals]
    addresses = [spec.address for spec in peripherals]
    for double in [word for words in (names, addresses) for word in words if words.count(word) > 1]:
        raise ScenarioError(f"there are two peripherals '{double}'")


def _adapter(node) -> AdapterSpec:
    fields = Fields(node, 'an adapter')
    spec = AdapterSpec(
        fields.take('name', values.word('hci0'), 'hci0'),
        fields.take('address', values.address, AdapterSpec.address),
        fields.take('slots', values.integer(1, 255)),
        fields.take('present', values.boolean, True),
    )
    if not fields.take('powered', values.boolean, True):
        raise ScenarioError("an adapter: 'powered: false' is not supported; switch the adapter off by D-Bus")
    fields.finish()
    return spec


def _peripherals(node, adapter: AdapterSpec) -> list[PeripheralSpec]:
    fields = Fields(node, 'a peripheral')
    spec = PeripheralSpec(fields.need('name', values.name), fields.need('address', values.address))
    fields.what = f"peripheral '{spec.name}'"
    count = fields.take('count', values.integer(1, 1000))
    _read_kind(fields, spec)
    spec.is_public = fields.take('address_type', values.word('public', 'random'), 'random') == 'public'
    spec.is_present = fields.take('present', values.boolean, True)
    spec.att_latency = fields.take('att_latency', values.duration, 0.0)
    spec.connect_failures = fields.take('connect_failures', values.integer(0, 1_000_000), 0)
    spec.pairs = fields.take('pairing', values.word('just-works', 'refused'), 'just-works') == 'just-works'
    spec.mtu = fields.take('mtu', values.integer(23, 517), 517)
    fields.list('adapters', values.word(adapter.name))
    if (advertise := fields.node('advertise')) is not None:
        _read_advertising(Fields(advertise, f"{fields.what}: 'advertise'"), spec.advertising)
    fields.finish('connect_latency', 'resolve_latency', 'signals_connected', 'lost_tail')
    return [spec] if count is None else [_copy(spec, number) for number in range(count)]


def _copy(spec: PeripheralSpec, number: int) -> PeripheralSpec:
    """Makes `strap-1`, `strap-2`, … of `strap`, with ascending addresses."""
    octets = (int(spec.address.replace(':', ''), 16) + number).to_bytes(6, 'big')
    advertising = spec.advertising
    if advertising.name is not None:
        advertising = dataclasses.replace(advertising, name=f'{advertising.name}-{number + 1}')
    return dataclasses.replace(
        spec, name=f'{spec.name}-{number + 1}', address=octets.hex(':').upper(), advertising=advertising
    )


def _read_advertising(fields: Fields, spec: AdvertisingSpec) -> None:
    spec.name = fields.take('name', values.text)
    services = fields.list('services', values.uuid)
    spec.services = spec.services if services is None else services
    spec.manufacturer_data = fields.lists('manufacturer_data', values.integer(0, 0xFFFF), values.octets)
    spec.service_data = fields.lists('service_data', values.uuid, values.octets)
    spec.turn = fields.take('turn', values.duration, spec.turn)
    spec.rssi = fields.take('rssi', values.integer(-126, 19), spec.rssi)
    spec.appearance = fields.take('appearance', values.integer(0, 0xFFFF))
    spec.interval = fields.take('interval', values.duration, spec.interval)
    spec.is_connectable = fields.take('connectable', values.boolean, spec.is_connectable)
    spec.has_flags = fields.take('flags', values.boolean, True)
    spec.tx_power = fields.take('tx_power', values.integer(-127, 20))
    if not 0.02 <= spec.interval <= 3600:
        raise ScenarioError(f"{fields.what}: 'interval' must be a duration from 20ms to 1h")
    fields.finish()


_KINDS = (
    'heart-rate', 'malformed-heart-rate', 'number-service', 'battery', 'environmental', 'thermometer', 'custom',
    'beacon', 'recorder',
)


def _read_kind(fields: Fields, spec: PeripheralSpec) -> None:
    """Reads the kind and its services. The first service is advertised."""
    kind = fields.need('kind', values.word(*_KINDS))
    rate = fields.take('rate', values.rate, 0.0 if kind in ('number-service', 'battery') else 1.0)
    # Persons and weather are the simulator's: here values always count.
    fields.take('values', str, 'counting')
    fields.take('day', str, '24h')
    if kind == 'recorder':
        spec.records = _records(Fields(fields.node('records') or {}, f"{fields.what}: 'records'"))
        spec.services = services.recorder(spec.records.form)
    elif kind != 'beacon':
        spec.services = _services(kind, fields, rate)
    spec.advertising.is_connectable = kind != 'beacon'
    spec.advertising.services = [service.uuid for service in spec.services[:1]]
    if kind != 'battery' and (level := fields.take('battery', values.integer(0, 100))) is not None:
        spec.services.append(services.battery(level))
    if (node := fields.node('information')) is not None:
        spec.services.append(_information(node))


def _services(kind: str, fields: Fields, rate: float) -> list[services.ServiceSpec]:
    if kind == 'heart-rate':
        return [services.heart_rate(_pattern(fields), rate)]
    if kind == 'number-service':
        return [services.number(fields.take('value', values.integer(0, 255), 0), rate)]
    if kind == 'battery':
        return [services.battery(fields.take('level', values.integer(0, 100), 100), rate)]
    if kind == 'custom':
        return [_service(node, rate) for node in fields.list('services') or []]
    makers = {
        'malformed-heart-rate': services.malformed_heart_rate, 'environmental': services.environmental,
        'thermometer': services.thermometer,
    }
    return [makers[kind](rate)]


def _records(fields: Fields) -> RecordsSpec:
    spec = RecordsSpec(fields.take('form', values.word('glucose', 'numbered'), RecordsSpec.form))
    numbers = values.integer(0, 10_000_000)
    spec.count = fields.take('count', numbers, spec.count)
    spec.capacity = fields.take('capacity', values.integer(1, 10_000_000), spec.capacity)
    spec.interval = fields.take('every', values.duration, spec.interval)
    if spec.form == 'numbered':
        spec.bits = int(fields.take('bits', values.word('16', '32'), '32'))
    spec.speed = fields.take('speed', values.integer(1, 1_000_000), spec.speed)
    spec.clock_error = fields.take('clock_ahead', values.duration, 0.0)
    least, most = fields.take('cut_after', numbers), fields.take('cut_before', numbers)
    if least is not None or most is not None:
        least = least or 0
        spec.cut = (least, max(least, 2 * least if most is None else most))
    fields.finish()
    return spec


def _pattern(fields: Fields) -> payloads.HeartRate:
    return payloads.HeartRate(
        fields.take('format', values.word('u8', 'u16'), 'u8') == 'u16',
        fields.take('energy', values.boolean, False),
        fields.take('rr', values.integer(0, 9), 0),
        fields.take('contact', values.word('none', 'yes', 'no'), 'none'),
    )


_INFORMATION = {
    'manufacturer': '2a29', 'model': '2a24', 'serial': '2a25', 'hardware': '2a27', 'firmware': '2a26',
    'software': '2a28',
}


def _information(node) -> services.ServiceSpec:
    fields = Fields(node, "'information'")
    texts = {uuid: fields.take(key, values.text) for key, uuid in _INFORMATION.items()}
    fields.finish()
    return services.information({uuid: text for uuid, text in texts.items() if text is not None})


def _service(node, rate: float) -> services.ServiceSpec:
    fields = Fields(node, 'a service')
    uuid = fields.need('uuid', values.uuid)
    characteristics = [_characteristic(node, rate) for node in fields.list('characteristics') or []]
    fields.finish()
    return services.ServiceSpec(uuid, characteristics)


def _characteristic(node, rate: float) -> services.CharacteristicSpec:
    fields = Fields(node, 'a characteristic')
    uuid = fields.need('uuid', values.uuid)
    words = fields.list('properties', values.word(*services.PROPERTIES)) or ['read']
    spec = services.CharacteristicSpec(uuid, sum({services.PROPERTIES[word] for word in words}))
    spec.value = fields.take('value', values.octets, b'')
    if listed := fields.list('notify', values.octets):
        spec.source, spec.rate = payloads.listed(listed), rate
    spec.rate = fields.take('rate', values.rate, spec.rate)
    spec.is_encrypted = fields.take('encrypted', values.boolean, False)
    if (rule := fields.node('write')) is not None:
        spec.writing = _write_rule(Fields(rule, "'write'"))
    spec.descriptors = [_descriptor(Fields(node, 'a descriptor')) for node in fields.list('descriptors') or []]
    fields.finish()
    return spec


def _write_rule(fields: Fields) -> services.WriteRule:
    rule = services.WriteRule(
        fields.take('min_length', values.integer(0, 512), 0),
        fields.take('max_length', values.integer(0, 512), 512),
        refusal=fields.take('error', values.integer(1, 255)),
        outcome='notify' if fields.take('notify_change', values.boolean, False) else 'store',
    )
    if rule.shortest > rule.longest:
        raise ScenarioError("'write': 'min_length' is more than 'max_length'")
    fields.finish()
    return rule


def _descriptor(fields: Fields) -> tuple[str, bytes]:
    descriptor = (fields.need('uuid', values.uuid), fields.take('value', values.octets, b''))
    fields.finish()
    return descriptor
