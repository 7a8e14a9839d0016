"""Services of GATT servers, like Sources/Tools/GattherdSimulator/Scenario/{ServiceSpec,StandardServices}.swift."""
import dataclasses
from collections.abc import Callable

from . import payloads

# Bluetooth Core Specification, Vol 3, Part G, "Characteristic Properties".
PROPERTIES = {
    'broadcast': 0x01, 'read': 0x02, 'write-without-response': 0x04, 'write': 0x08, 'notify': 0x10, 'indicate': 0x20,
}
READ, WRITE, NOTIFY, INDICATE = 0x02, 0x08, 0x10, 0x20


@dataclasses.dataclass
class WriteRule:
    """The handling of written values."""

    shortest: int = 0
    longest: int = 512
    # The only permitted value, if any. Others are refused with `refusal`.
    only: bytes | None = None
    # The ATT error for all values; with `only`, for all others.
    refusal: int | None = None
    # 'store'; 'notify' (stores the value and notifies it if it has changed); 'reset-energy'.
    outcome: str = 'store'

    def error(self, value: bytes) -> int | None:
        """The ATT error for `value`; None if it is accepted."""
        if not self.shortest <= len(value) <= self.longest:
            return 0x0D
        return None if value == self.only else self.refusal


@dataclasses.dataclass
class CharacteristicSpec:
    uuid: str
    properties: int
    # The initial value.
    value: bytes = b''
    # None: no notifications.
    source: Callable[[int, bytes, int], bytes] | None = None
    rate: float = 0.0
    writing: WriteRule = dataclasses.field(default_factory=WriteRule)
    is_encrypted: bool = False
    # The part in the download of stored records: 'values', 'control' or 'clock'.
    role: str | None = None
    descriptors: list[tuple[str, bytes]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class ServiceSpec:
    uuid: str
    characteristics: list[CharacteristicSpec]


def heart_rate(pattern: payloads.HeartRate, rate: float) -> ServiceSpec:
    characteristics = [
        CharacteristicSpec('2a37', NOTIFY, source=pattern, rate=rate),
        CharacteristicSpec('2a38', READ, value=b'\x01'),
    ]
    if pattern.has_energy:
        rule = WriteRule(1, 1, only=b'\x01', refusal=0x80, outcome='reset-energy')
        characteristics.append(CharacteristicSpec('2a39', WRITE, writing=rule))
    return ServiceSpec('180d', characteristics)


def malformed_heart_rate(rate: float) -> ServiceSpec:
    """Malformed measurements: empty, flags only, half of a two-byte rate."""
    source = payloads.listed([b'', b'\x00', b'\x01\x48'])
    return ServiceSpec('180d', [CharacteristicSpec('2a37', NOTIFY, source=source, rate=rate)])


def number(value: int, rate: float) -> ServiceSpec:
    """The Number Service of LeanDog's tutorial. With a rate it counts up."""
    characteristic = CharacteristicSpec(
        '7a4b0001-999f-4717-b63a-066e06971f59', READ | WRITE | NOTIFY, bytes([value]), payloads.counter, rate,
        WriteRule(1, 1, outcome='notify'),
        descriptors=[('2901', b'Some Number'), ('2904', bytes.fromhex('04002700010000'))],
    )
    return ServiceSpec('7a4bbfe6-999f-4717-b63a-066e06971f59', [characteristic])


def battery(level: int, rate: float = 0.0) -> ServiceSpec:
    source = payloads.wave(1, 0, 100) if rate > 0 else None
    return ServiceSpec('180f', [CharacteristicSpec('2a19', READ | NOTIFY, bytes([level]), source, rate)])


def environmental(rate: float) -> ServiceSpec:
    """Temperature in 0.01 °C, humidity in 0.01 %, pressure in 0.1 Pa."""
    waves = [('2a6e', 2, -500, 4500), ('2a6f', 2, 2000, 8000), ('2a6d', 4, 950_000, 1_050_000)]
    sources = [(uuid, payloads.wave(octets, low, high)) for uuid, octets, low, high in waves]
    return ServiceSpec('181a', [
        CharacteristicSpec(uuid, READ | NOTIFY, source(0, b'', 0), source, rate) for uuid, source in sources
    ])


def thermometer(rate: float) -> ServiceSpec:
    """Health Thermometer, which indicates; worn in the armpit."""
    return ServiceSpec('1809', [
        CharacteristicSpec('2a1c', INDICATE, source=payloads.thermometer, rate=rate),
        CharacteristicSpec('2a1d', READ, value=b'\x01'),
    ])


def information(texts: dict[str, str]) -> ServiceSpec:
    """Device Information, by assigned number."""
    return ServiceSpec('180a', [
        CharacteristicSpec(uuid, READ, value=text.encode()) for uuid, text in sorted(texts.items())
    ])


def recorder(form: str) -> list[ServiceSpec]:
    """Stored records with a Record Access Control Point: Glucose, or numbered records; and the device's clock."""
    control = CharacteristicSpec('2a52', WRITE | INDICATE, role='control')
    clock = ServiceSpec('1805', [CharacteristicSpec('2a2b', READ, role='clock')])
    if form == 'glucose':
        values = CharacteristicSpec('2a18', NOTIFY, role='values')
        return [ServiceSpec('1808', [values, CharacteristicSpec('2a51', READ, value=bytes(2)), control]), clock]
    return [ServiceSpec('fff0', [CharacteristicSpec('fff1', NOTIFY, role='values'), control]), clock]
