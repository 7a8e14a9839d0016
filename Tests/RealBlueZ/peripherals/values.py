"""The syntax of values in scenarios and orders, like Sources/Tools/GattherdSimulator/Scenario/ScenarioValues.swift.

Each function takes a text and raises ValueError, with what was expected, for any other.
"""
import re

_UNITS = {'ms': 0.001, 's': 1.0, 'm': 60.0, 'h': 3600.0}
_BASE_TAIL = '-0000-1000-8000-00805f9b34fb'


def duration(text: str) -> float:
    """Seconds."""
    if text == '0':
        return 0.0
    match = re.fullmatch(r'(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h)', text)
    if not match:
        raise ValueError('a duration; write for example 500ms, 30s or 5m')
    return float(match[1]) * _UNITS[match[2]]


def boolean(text: str) -> bool:
    if text in ('true', 'yes', 'on'):
        return True
    if text in ('false', 'no', 'off'):
        return False
    raise ValueError('true or false')


def rate(text: str) -> float:
    """Notifications per second."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number == 0 or 0.001 <= number <= 1000:
        return number
    raise ValueError('a number of notifications per second: 0, or 0.001 to 1000')


def octets(text: str) -> bytes:
    try:
        value = bytes.fromhex(re.sub(r'[ :\-\t]', '', text))
    except ValueError:
        value = None
    if value is None or len(value) > 512:
        raise ValueError("bytes in hexadecimal, for example '16 48'")
    return value


def integer(lowest: int, highest: int):
    """A parser of whole numbers in a range, decimal or hexadecimal after `0x`."""
    def parse(text: str) -> int:
        match = re.fullmatch(r'0x[0-9a-fA-F]+|[+-]?[0-9]+', text)
        number = int(text, 16 if text.startswith('0x') else 10) if match else lowest - 1
        if lowest <= number <= highest:
            return number
        raise ValueError(f'a whole number from {lowest} to {highest}')
    return parse


def word(*words: str):
    """A parser of one word of a list."""
    def parse(text: str) -> str:
        if text in words:
            return text
        raise ValueError('one of ' + ', '.join(words))
    return parse


def text(text: str) -> str:
    return text


def name(text: str) -> str:
    if re.fullmatch(r'[A-Za-z0-9_-]{1,64}', text):
        return text
    raise ValueError("a name of letters, digits, '-' and '_'")


def address(text: str) -> str:
    if re.fullmatch(r'([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}', text):
        return text.upper()
    raise ValueError('a Bluetooth address; write for example C0:FF:EE:00:00:01')


def uuid(text: str) -> str:
    """Four lowercase digits for a 16-bit assigned number, else the form of 36 characters."""
    short = re.fullmatch(r'(?:0[xX])?([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8})', text)
    long = re.fullmatch(r'[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}', text)
    if not (short or long):
        raise ValueError('a UUID; write for example 180d or 7a4bbfe6-999f-4717-b63a-066e06971f59')
    canonical = (short[1].zfill(8) + _BASE_TAIL if short else text).lower()
    is_assigned = canonical.startswith('0000') and canonical.endswith(_BASE_TAIL)
    return canonical[4:8] if is_assigned else canonical
