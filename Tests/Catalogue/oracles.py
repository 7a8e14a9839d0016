"""The independent decoders: how each is called, and which of its values belong to which metric of a profile."""
import contextlib
import datetime
import enum
import io
import time
from types import SimpleNamespace

from bleak.backends.device import BLEDevice
from bleparser import BleParser
from bluemaestro_ble.parser import BlueMaestroBluetoothDeviceData
from bthome_ble import BTHomeBluetoothDeviceData
from govee_ble.parser import GoveeBluetoothDeviceData
from habluetooth import BluetoothServiceInfoBleak
from inkbird_ble.parser import INKBIRDBluetoothDeviceData
from kegtron_ble.parser import KegtronBluetoothDeviceData
from leaone_ble.parser import LeaoneBluetoothDeviceData
from moat_ble.parser import MoatBluetoothDeviceData
from mopeka_iot_ble.parser import MopekaIOTBluetoothDeviceData
from oralb_ble.parser import OralBBluetoothDeviceData
from qingping_ble.parser import QingpingBluetoothDeviceData
from rapt_ble.parser import RAPTPillBluetoothDeviceData
from ruuvitag_ble.parser import RuuvitagBluetoothDeviceData
from sensirion_ble.parser import SensirionBluetoothDeviceData
from sensorpro_ble.parser import SensorProBluetoothDeviceData
from sensorpush_ble.parser import SensorPushBluetoothDeviceData
from thermobeacon_ble.parser import ThermoBeaconBluetoothDeviceData
from thermopro_ble.parser import ThermoProBluetoothDeviceData
from tilt_ble.parser import TiltBluetoothDeviceData
from xiaomi_ble import XiaomiBluetoothDeviceData

import aranet4.client
import airthings_ble.sensor_decoders as airthings
import switchbot.adv_parser as switchbot
import victron_ble.devices as victron


def uuid(short):
    return f"0000{short.lower()}-0000-1000-8000-00805f9b34fb" if len(short) == 4 else short.lower()


def service_info(case, services=()):
    """The advertisement as the decoders of Home Assistant take it."""
    companies, data = {}, {}
    for number, text in case["parts"]:
        octets = bytes.fromhex(text)
        if number.startswith("company "):
            companies[int(number.removeprefix("company "))] = octets
        else:
            data[uuid(number)] = octets
    device = BLEDevice(address=case["address"], name=case["name"], details={})
    return BluetoothServiceInfoBleak(
        name=case["name"], address=case["address"], rssi=-60, manufacturer_data=companies, service_data=data,
        service_uuids=[uuid(each) for each in services], source="local", device=device, advertisement=None,
        connectable=True, time=time.monotonic(), tx_power=0, raw=None,
    )


def state_data(make, services=()):
    """Returns a decoder that calls a parser of sensor-state-data; `make` creates it for a case."""
    def decode(case):
        try:
            update = make(case).update(service_info(case, services))
        except Exception:  # A decoder that fails on mutated or rejected bytes is no oracle for them.
            if case["recorded"] and "values" in case:
                raise
            return None
        values = {key.key: value.native_value for key, value in update.entity_values.items()}
        values |= {key.key: value.native_value for key, value in update.binary_entity_values.items()}
        values.pop("signal_strength", None)
        return values
    return decode


def bleparsers(case):
    """The advertisement as bleparser takes it: structures with their length and type."""
    def structure(kind, octets):
        return bytes([len(octets) + 1, kind]) + octets
    services, companies = [], []
    for number, text in case["parts"]:
        octets = bytes.fromhex(text)
        if number.startswith("company "):
            companies.append(structure(0xFF, int(number.removeprefix("company ")).to_bytes(2, "little") + octets))
        else:
            services.append(structure(0x16, bytes.fromhex(number)[::-1] + octets))
    address = bytes.fromhex(case["address"].replace(":", ""))
    keys = {address: bytes.fromhex(case["key"])} if case["key"] else {}
    parser = BleParser(discovery=True, filter_duplicates=False, aeskeys=keys)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the numbers of some packets
            values, _ = parser.parse_advertisement(address, -60, None, None, case["name"], services, companies)
    except Exception:  # a decoder that fails on mutated bytes
        return None
    return values and {
        name.replace(" ", "_"): bool(value) if name in ("switch", "impact", "motion", "opening") else value
        for name, value in values.items()
    }


def laicas(case):
    """The decoder limits the impedance to 430 to 630."""
    values = bleparsers(case)
    return values and {name: value for name, value in values.items() if name != "impedance" or 430 < value < 630}


def atcs(case):
    """The decoder computes the voltage of encrypted payloads from the battery level."""
    values = bleparsers(case)
    return values and {name: value for name, value in values.items() if name != "voltage" or not case["key"]}


def miscales(case):
    """The weight is in the unit of the scale's display."""
    values = bleparsers(case)
    units = {"kg": 1, "lbs": 0.45359237, "jin": 0.5}
    known = case["stream"] == "weight" or octets(case)[0] in (2, 3, 0x12)
    factor = units.get(values.get("weight_unit")) if values and known else None
    return factor and {
        name: value * factor if name in ("weight", "stabilized_weight") else value for name, value in values.items()
    }


def relsibs(case):
    """The name tells the model."""
    return bleparsers(case | {"name": "ECo"})


def thermopros(case):
    """The number of a probe is in the name of each of its values."""
    values = state_data(lambda case: ThermoProBluetoothDeviceData())(case)
    return values and {name.partition("_probe_")[0]: value for name, value in values.items()}


def xiaomis(case):
    """The states of a band are 0 or 1. The durations of an occupancy sensor are in minutes."""
    values = state_data(keyed(XiaomiBluetoothDeviceData))(case)
    values = values and values | {
        name: 60 * values[name] for name in ("duration_detected", "duration_cleared") if name in values
    }
    return values and {
        name: bool(value) if name in ("asleep", "wearing") else value for name, value in values.items()
        if name not in ("asleep", "wearing") or value in (0, 1)
    }


def govees(case):
    """The ambient temperature of the H5191 has the name of other models' only one."""
    values = state_data(lambda case: GoveeBluetoothDeviceData())(case)
    if values and case["stream"] == "probe_h5191":
        values["ambient_temperature"] = values.pop("temperature", None)
    return values


def moats(case):
    """moat-ble reads the service data; bleparser, the manufacturer-specific data."""
    if case["stream"] == "climate":
        return state_data(lambda case: MoatBluetoothDeviceData())(case)
    return bleparsers(case)


def tilt(case):
    """The temperature is in °F."""
    values = state_data(lambda case: TiltBluetoothDeviceData())(case)
    if values and values.get("temperature") is not None:
        values["temperature"] = (values["temperature"] - 32) * 5 / 9
    return values


def leaone(case):
    """The address is in the data too, and has to be the sender's."""
    address = ":".join(f"{octet:02X}" for octet in bytes.fromhex(case["payload"])[-6:])
    return state_data(lambda case: LeaoneBluetoothDeviceData())(case | {"address": address})


def keyed(parser):
    return lambda case: parser(bindkey=bytes.fromhex(case["key"]) if case["key"] else None)


def octets(case, part=-1):
    return bytes.fromhex(case["parts"][part][1])


def aranet(case):
    info = SimpleNamespace(manufacturer_data={0x0702: octets(case)}, rssi=-60)
    name = "Aranet4 0001" if case["stream"] == "aranet4" else ""
    try:
        reading = aranet4.client.Aranet4Advertisement(SimpleNamespace(name=name, address=case["address"]), info).readings
    except ValueError:
        return None
    if reading is None or case["stream"] != {0: "aranet4", 1: "aranet2", 2: "radiation", 3: "radon"}.get(reading.type):
        return None
    return {key: value for key, value in vars(reading).items() if value != -1}


def airthing(case):
    decoders = {
        "wave_plus": airthings.CHAR_UUID_WAVE_PLUS_DATA, "wave_radon": airthings.CHAR_UUID_WAVE_2_DATA,
        "wave_mini": airthings.CHAR_UUID_WAVEMINI_DATA,
    }
    if case["stream"] not in decoders:
        return None
    try:
        return airthings.SENSOR_DECODERS[str(decoders[case["stream"]])](bytearray.fromhex(case["payload"]))
    except Exception:  # struct.error for another length
        return None


def switchbots(case):
    service = [bytes.fromhex(text) for number, text in case["parts"] if number in ("fd3d", "0d00")]
    company = [bytes.fromhex(text) for number, text in case["parts"] if number == "company 2409"]
    if not service or not service[0]:
        return None
    try:
        data = switchbot._parse_data(service[0], company[0] if company else None, 2409 if company else None, None)
    except Exception:  # mutated bytes
        return None
    if not data or not data.get("data"):
        return None
    # Mutated service data may be that of another model.
    stream = case["profile"], case["stream"]
    if case["recorded"]:
        SWITCHBOT_MODELS[stream] = data["modelName"]
    if SWITCHBOT_MODELS.get(stream) != data["modelName"]:
        return None
    return switchbot_values(data["data"])


SWITCHBOT_MODELS = {}


def switchbot_values(data):
    """The values with labels as words; those of a second relay have the name NAME_2."""
    if 2 in data:
        data = data[1] | {f"{name}_2": value for name, value in data[2].items()}
    values = {}
    for name, value in data.items():
        if isinstance(value, datetime.timedelta):
            value = value / datetime.timedelta(hours=1)
        elif isinstance(value, enum.Enum):
            value = value.name.lower()
        if isinstance(value, str):
            value = value.replace("_", " ").replace("stop", "stopped")
            value = "level" if value.startswith("level ") else value
        values[name.replace(" ", "_")] = value
    return values


def victrons(case):
    data = octets(case)
    device = victron.detect_device_type(data)
    if device is None or not case["key"]:
        return None
    try:
        parsed = device(case["key"]).parse(data)
    except Exception:
        return None
    values = {}
    for name in dir(parsed):
        if name.startswith("get_"):
            try:
                value = getattr(parsed, name)()
            except (KeyError, ValueError):  # a value that is not sent, or a code that the decoder does not know
                continue
            values[name[4:]] = getattr(value, "name", value)
    if case["stream"] == "multi_rs" and values.get("yield_today") is not None:
        values["yield_today"] *= 1000  # in Wh, as of solar chargers
    for number, voltage in enumerate(values.get("cell_voltages", []), 1):
        values[f"cell_voltage_{number}"] = voltage
    return values


DECODERS = {
    "acconeer": bleparsers,
    "airthings": airthing,
    "almendo": bleparsers,
    "amazfit": bleparsers,
    "aranet": aranet,
    "b-parasite": bleparsers,
    "blue-maestro": state_data(lambda case: BlueMaestroBluetoothDeviceData()),
    "bthome": state_data(keyed(BTHomeBluetoothDeviceData)),
    "bthome-1": state_data(keyed(BTHomeBluetoothDeviceData)),
    "ela": bleparsers,
    "govee": govees,
    "inkbird": state_data(lambda case: INKBIRDBluetoothDeviceData(), ["fff0"]),
    "inode": bleparsers,
    "kegtron": state_data(lambda case: KegtronBluetoothDeviceData()),
    "kkm": bleparsers,
    "laica": laicas,
    "leaone": leaone,
    "mi-scale": miscales,
    "mibeacon": xiaomis,
    "mikrotik": bleparsers,
    "moat": moats,
    "mopeka": state_data(lambda case: MopekaIOTBluetoothDeviceData(), ["fee5"]),
    "oral-b": state_data(lambda case: OralBBluetoothDeviceData()),
    "qingping": state_data(lambda case: QingpingBluetoothDeviceData()),
    "rapt-pill": state_data(lambda case: RAPTPillBluetoothDeviceData()),
    "relsib": relsibs,
    "ruuvitag": state_data(lambda case: RuuvitagBluetoothDeviceData()),
    "sensirion": state_data(lambda case: SensirionBluetoothDeviceData()),
    "sensorpro": state_data(lambda case: SensorProBluetoothDeviceData()),
    "sensorpush": state_data(lambda case: SensorPushBluetoothDeviceData(), ["ef090000-11d6-42ba-93b8-9dd7ec090aa9"]),
    "smartdry": bleparsers,
    "switchbot": switchbots,
    "switchbot-access": switchbots,
    "switchbot-appliances": switchbots,
    "switchbot-covers": switchbots,
    "switchbot-lights": switchbots,
    "switchbot-power": switchbots,
    "thermobeacon": state_data(lambda case: ThermoBeaconBluetoothDeviceData(), ["fff0"]),
    "thermopro": thermopros,
    "tilt": tilt,
    "vegtrug": bleparsers,
    "victron": victrons,
    "xiaomi-atc": atcs,
}

CLIMATE = [("temperature", "temperature", 0.0051), ("humidity", "humidity", 0.0051), ("battery_level", "battery", 0)]
PROBES = [("temperature", "temperature temperature_probe_1", 0.0051)]

# For each profile: our metric, the possible keys of the decoder, the difference that rounding explains, and the factor
# from their unit to ours.
METRICS = {
    "acconeer": [("battery_level", "battery", 0), ("temperature", "temperature", 0), ("occupied", "motion", 0)],
    "airthings": [
        ("humidity", "humidity", 0.001), ("illuminance_level", "illuminance", 1), ("radon_1day", "radon_1day_avg", 0),
        ("radon_longterm", "radon_longterm_avg", 0), ("temperature", "temperature", 0.001), ("pressure", "pressure", 0.001),
        ("co2", "co2", 0), ("voc", "voc", 0),
    ],
    "almendo": CLIMATE[:2] + [("co2", "co2", 0), ("tvoc", "tvoc", 0), ("aqi", "aqi", 0)],
    "amazfit": [("weight", "weight", 0.0051), ("impedance", "impedance", 0.051), ("heart_rate", "pulse", 0)],
    "aranet": [
        ("co2", "co2", 0), ("temperature", "temperature", 0.051), ("pressure", "pressure", 0.051),
        ("humidity", "humidity", 0.051), ("battery_level", "battery", 0), ("interval", "interval", 0),
        ("radon", "radon_concentration", 0), ("dose_duration", "radiation_duration", 0),
    ],
    "b-parasite": [
        ("temperature", "temperature", 0.0001), ("humidity", "humidity", 0.002), ("moisture", "moisture", 0.002),
        ("battery_voltage", "voltage", 0.0001), ("illuminance", "illuminance", 0),
    ],
    "blue-maestro": CLIMATE + [("dew_point", "dew_point", 0.011), ("pressure", "pressure", 0.051)],
    "bthome": [("temperature", "temperature temperature_1", 0.0051)] + CLIMATE[1:] + [
        ("pressure", "pressure", 0.006), ("illuminance", "illuminance", 0.006), ("co2", "carbon_dioxide", 0),
        ("conductivity", "conductivity", 0), ("dew_point", "dew_point", 0.0051),
        ("motion", "motion", 0), ("window", "window", 0), ("door", "door", 0), ("pm2_5", "pm25", 0), ("pm10", "pm10", 0),
        ("tvoc", "volatile_organic_compounds", 0), ("uv_index", "uv_index", 0.051), ("speed", "speed", 0.006),
        ("voltage", "voltage voltage_1", 0.001), ("packet_id", "packet_id", 0), ("count", "count count_1", 0),
    ],
    "bthome-1": [("temperature", "temperature temperature_1", 0.0051)] + CLIMATE[1:] + [
        ("packet_id", "packet_id", 0), ("pressure", "pressure", 0.006), ("illuminance", "illuminance", 0.006),
        ("energy", "energy", 0.0006), ("power", "power", 0.006), ("voltage", "voltage", 0.001), ("co2", "carbon_dioxide", 0),
        ("pm2_5", "pm25", 0), ("pm10", "pm10", 0), ("tvoc", "volatile_organic_compounds", 0), ("dew_point", "dew_point", 0.0051),
        ("moisture", "moisture", 0.0051), ("door", "door", 0), ("motion", "motion", 0), ("window", "window", 0),
    ],
    "ela": CLIMATE[:2],
    "govee": PROBES + CLIMATE[2:] + [
        ("humidity", "humidity humidity_probe_1", 0.0051), ("pm2_5", "pm25", 0), ("open", "window", 0),
        ("co2", "carbon_dioxide", 0), ("occupied", "occupancy presence", 0),
        ("alarm_temperature", "temperature_alarm_probe_1", 0.0051), ("ambient_temperature", "ambient_temperature", 0.0051),
    ] + [
        (f"{name}_{number}", f"{theirs}_probe_{number}", 0.0051) for number in range(2, 5)
        for name, theirs in (("temperature", "temperature"), ("alarm_temperature", "temperature_alarm"))
    ],
    "inkbird": PROBES + CLIMATE[1:] + [("co2", "carbon_dioxide", 0)] + [
        (f"temperature_{number}", f"temperature_probe_{number}", 0.051) for number in range(2, 7)
    ],
    "inode": CLIMATE + [
        ("pressure", "pressure", 0.051), ("power", "power", 0.006), ("energy", "energy", 0.0006),
        ("light_level", "light_level", 0.06),
    ],
    "kegtron": [
        ("keg_size", "keg_size keg_size_port_2", 0.001), ("volume_start", "volume_start volume_start_port_2", 0.001),
        ("volume_dispensed", "volume_dispensed volume_dispensed_port_2", 0.001),
    ],
    "kkm": CLIMATE[:2] + [("battery_voltage", "voltage", 0.001)] + [
        (f"acceleration_{axis}", f"acceleration_{axis}", 0.0001, 0.001) for axis in "xyz"
    ],
    "laica": [("weight", "weight", 0.051), ("impedance", "impedance", 0)],
    "leaone": [("weight", "mass", 0.006), ("unstable_weight", "non_stabilized_mass", 0.006), ("impedance", "impedance", 0.051)],
    "mi-scale": [("weight", "weight stabilized_weight", 0.0051), ("impedance", "impedance", 0)],
    "mibeacon": CLIMATE + [
        ("illuminance", "illuminance", 0.051), ("moisture", "moisture", 0), ("conductivity", "conductivity", 0),
        ("motion", "motion", 0), ("light", "light", 0), ("formaldehyde", "formaldehyde", 0.006), ("smoke", "smoke", 0), ("consumable", "consumable", 0),
        ("weight", "mass", 0.006), ("profile_id", "profile_id", 0), ("heart_rate", "heart_rate", 0),
        ("impedance", "impedance_low", 0.051), ("impedance_high", "impedance_high", 0.051), ("brushing", "toothbrush", 0),
        ("score", "score", 0), ("brush_count", "counter", 0), ("armed", "armed", 0), ("asleep", "asleep", 0),
        ("wearing", "wearing", 0), ("charging", "charging_state", 0), ("occupied", "occupancy", 0),
        ("occupied_time", "pressure_present_duration duration_detected", 0),
        ("vacant_time", "pressure_not_present_duration duration_cleared", 0),
        ("water", "bottom_submersion", 0), ("splash", "top_splash", 0),
    ],
    "mikrotik": CLIMATE[:1] + [
        ("uptime", "uptime", 0), ("battery_level", "battery", 0), ("magnet", "switch", 0), ("impact", "impact", 0),
    ],
    "moat": CLIMATE[:2] + [("battery_level", "battery", 0.051), ("battery_voltage", "voltage", 0.001)],
    "mopeka": CLIMATE[:1] + [
        ("battery_level", "battery", 0.06), ("battery_voltage", "battery_voltage", 0.001), ("level", "tank_level", 1),
        ("button", "button_pressed", 0), ("quality", "reading_quality_raw", 0),
    ],
    "oral-b": [
        ("brushing_time", "time", 0), ("state", "toothbrush_state", 0), ("pressure", "pressure", 0), ("mode", "mode", 0),
        ("sector_timer", "sector_timer", 0), ("sectors", "number_of_sectors", 0),
    ],
    "qingping": CLIMATE + [
        ("pressure", "pressure", 0.051), ("illuminance", "illuminance", 0), ("pm2_5", "pm25", 0), ("pm10", "pm10", 0),
        ("co2", "carbon_dioxide", 0), ("voc_index", "voc_index", 0), ("noise", "sound_pressure", 0), ("motion", "motion", 0),
    ],
    "rapt-pill": [
        ("temperature", "temperature", 0.006), ("specific_gravity", "specific_gravity", 0.00006), ("battery_level", "battery", 0.51),
        ("gravity_velocity", "specific_gravity_velocity", 0.001),
    ],
    "relsib": CLIMATE + [("co2", "co2", 0)],
    "ruuvitag": CLIMATE[:2] + [
        ("pressure", "pressure", 0.006), ("movement_counter", "movement_counter", 0), ("pm1", "pm1", 0.051), ("pm2_5", "pm25", 0.051),
        ("pm4", "pm4", 0.051), ("pm10", "pm10", 0.051), ("co2", "carbon_dioxide", 0), ("voc_index", "voc_index", 0),
        ("nox_index", "nox_index", 0), ("illuminance", "illuminance", 0.51), ("battery_voltage", "voltage", 0.0011, 0.001),
        ("acceleration_x", "acceleration_x", 0.0006, 1 / 9.80665), ("acceleration_y", "acceleration_y", 0.0006, 1 / 9.80665),
        ("acceleration_z", "acceleration_z", 0.0006, 1 / 9.80665),
    ],
    "sensirion": [("temperature", "temperature", 0.051), ("humidity", "humidity", 0.051), ("co2", "carbon_dioxide", 0)],
    "sensorpro": CLIMATE + [("battery_voltage", "voltage", 0.006)],
    "sensorpush": CLIMATE[:2] + [("pressure", "pressure", 0.006)],
    "smartdry": [("temperature", "temperature", 0.001), ("humidity", "humidity", 0.001), ("shake", "shake", 0)],
    "switchbot": [
        ("temperature", "temperature", 0.001), ("humidity", "humidity", 0), ("battery_level", "battery", 0), ("co2", "co2", 0),
        ("open", "contact_open", 0), ("left_open", "contact_timeout", 0), ("light", "is_light", 0), ("motion", "motion_detected", 0),
        ("water", "leak", 0), ("tampered", "tampered", 0), ("battery_low", "low_battery", 0), ("button_count", "button_count", 0),
        ("illuminance", "illuminance", 0), ("light_level", "lightLevel", 0),
    ],
    "switchbot-access": [
        ("state", "status", 0), ("door_open", "door_open", 0), ("unclosed_alarm", "unclosed_alarm", 0),
        ("unlocked_alarm", "unlocked_alarm", 0), ("low_temperature", "low_temperature_alarm low_temperature", 0),
        ("power_alarm", "power_alarm", 0), ("calibrated", "calibration", 0), ("battery_level", "battery", 0),
        ("attempt_state", "attempt_state", 0), ("doorbell", "doorbell", 0), ("locked_out", "lockout_alarm", 0),
        ("tampered", "tamper_alarm", 0), ("duress", "duress_alarm", 0), ("high_temperature", "high_temperature", 0),
        ("charging", "battery_charging", 0), ("presence_level", "pir_triggered_level radar_triggered_level", 0),
        ("relay", "isOn", 0),
    ],
    "switchbot-appliances": [
        ("is_on", "isOn", 0), ("mode", "mode", 0), ("oscillating_horizontal", "oscillating_horizontal", 0),
        ("oscillating_vertical", "oscillating_vertical", 0), ("speed", "speed", 0), ("battery_level", "battery", 0),
        ("charging", "charging battery_charging", 0), ("work_status", "work_status", 0),
        ("dust_bin_connected", "dusbin_connected", 0), ("child_lock", "child_lock", 0),
        ("filter_time", "filter_element_working_time filter_run_time", 0), ("error", "err_code", 0),
        ("temperature", "temperature", 0.001), ("humidity", "humidity", 0), ("target_humidity", "target_humidity", 0),
        ("water_level", "water_level", 0), ("tank_removed", "tank_removed", 0), ("tilted", "tilted_alert", 0),
        ("filter_missing", "filter_missing", 0), ("target_temperature", "target_temperature", 0.001),
        ("window_open", "door_open", 0), ("fault", "fault_code", 0), ("image", "image_index", 0),
    ],
    "switchbot-covers": [
        ("is_on", "isOn", 0), ("position", "position", 0), ("tilt", "tilt", 0), ("moving", "inMotion", 0),
        ("light_level", "lightLevel", 0), ("calibrated", "calibration", 0), ("battery_level", "battery", 0),
    ],
    "switchbot-lights": [
        ("is_on", "isOn", 0), ("brightness", "brightness", 0), ("color_mode", "color_mode", 0), ("color_temperature", "cw", 0),
        ("main_on", "main_isOn", 0), ("main_brightness", "main_brightness", 0),
    ],
    "switchbot-power": [
        ("is_on", "isOn", 0), ("power", "power", 0.001), ("is_on_2", "isOn_2", 0), ("power_2", "power_2", 0.001),
    ],
    "thermobeacon": CLIMATE[:2] + [("battery_level", "battery", 0.51), ("battery_voltage", "voltage", 0.006), ("button", "occupancy", 0)],
    "thermopro": [("temperature", "temperature internal_temperature", 0.051), CLIMATE[1]] + [
        ("ambient_temperature", "ambient_temperature", 1), ("center_temperature", "internal_center_temperature", 0.051),
        ("end_temperature", "internal_end_temperature", 0.051),
        ("battery_level", "battery", 1.2),
    ],
    "tilt": [("specific_gravity", "specific_gravity", 0.0001), ("temperature", "temperature", 0.51)],
    "vegtrug": CLIMATE + [
        ("moisture", "moisture", 0), ("illuminance", "illuminance", 0), ("conductivity", "conductivity", 0),
    ],
    "victron": [
        ("voltage", "voltage battery_voltage output_voltage1", 0.001), ("voltage_2", "output_voltage2", 0.001),
        ("current", "current battery_charging_current battery_current output_current1", 0.001), ("state_of_charge", "soc", 0.06), ("consumed", "consumed_ah", 0.06),
        ("time_to_go", "remaining_mins", 0), ("starter_voltage", "starter_voltage", 0.001), ("power", "solar_power", 0),
        ("yield_today", "yield_today", 0.001, 0.001), ("load_current", "external_device_load", 0.001),
        ("ac_in_power", "ac_in_power active_ac_in_power", 0), ("ac_out_power", "ac_out_power active_ac_out_power", 0), ("midpoint_voltage", "midpoint_voltage", 0.001), ("apparent_power", "ac_apparent_power", 0), ("ac_voltage", "ac_voltage", 0.001),
        ("input_voltage", "input_voltage", 0.001), ("output_voltage", "output_voltage", 0.001), ("ac_current", "ac_current", 0.06),
        ("temperature", "battery_temperature temperature", 0.006), ("solar_power", "pv_power", 0), ("cell_voltage", "cell_voltage_1", 0.001),
        ("output_current", "output_current", 0.001), ("input_current", "input_current", 0.001), ("io_status", "io_status", 0),
        ("alarm_flags", "alarm_flags", 0), ("bms_flags", "bms_flags", 0),
    ] + [(f"cell_voltage_{number}", f"cell_voltage_{number}", 0.001) for number in range(2, 9)],
    "xiaomi-atc": CLIMATE + [
        ("battery_voltage", "voltage", 0.0001), ("reed_switch", "opening", 0), ("trigger", "switch", 0),
    ],
}
