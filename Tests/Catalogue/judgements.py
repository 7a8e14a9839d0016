"""The judgements on differences between the standard profiles and independent decoders."""


def reason(case, metric, ours, theirs):
    """Returns why a difference is right as it is; None for a difference that nobody has looked at."""
    for profile, metrics, holds, words in JUDGEMENTS:
        if profile == case["profile"] and (metrics is None or metric in metrics) and holds(case, ours, theirs):
            return words
    return None


def is_unknown(value):
    """Returns a condition: our value is unknown, theirs is `value`."""
    return lambda case, ours, theirs: ours is None and theirs == value


# The profile, the metrics (None for all), a condition for the case and both values, and the reason.
JUDGEMENTS = [
    ("amazfit", ["impedance", "heart_rate"], is_unknown(0), "0 stands for no measurement"),
    (
        "bthome", ["battery_level"], lambda case, ours, theirs: isinstance(theirs, bool),
        "the decoder has one name for a level in % and for the binary sensor of a low battery",
    ),
    (
        "bthome", ["temperature"],
        lambda case, ours, theirs: "58" in case["payload"] and None not in (ours, theirs) and abs(ours - theirs) < 0.051,
        "object 58 is in steps of 0.35 °C, which the decoder rounds to tenths",
    ),
    (
        "bthome-1", ["power"], lambda case, ours, theirs: isinstance(theirs, bool),
        "the decoder has one name for a power in W and for the binary sensor of a power supply",
    ),
    (
        "bthome-1", ["humidity"], lambda case, ours, theirs: ours is None and "0203" in case["payload"],
        "an object of one byte is not the documented humidity of two",
    ),
    ("ela", ["temperature"], is_unknown(327.67), "7FFF stands for unknown in Theengs Decoder"),
    ("govee", None, is_unknown(0.0), "FFFF stands for a probe that is not plugged in, not for 0 °C"),
    ("inkbird", None, is_unknown(-1.0), "FFF6 stands for a probe that is not plugged in, not for -1 °C"),
    (
        "inkbird", None, lambda case, ours, theirs: ours is None and case["stream"] == "barbecue" and case["payload"].startswith("0200"),
        "the data of company 2 are no temperatures; the decoder leaves them out if it has heard others",
    ),
    (
        "inode", ["energy", "power"], lambda case, ours, theirs: ours is None,
        "a meter that counts something else than electricity has no energy, and one without a constant has no unit",
    ),
    (
        "inode", ["temperature"], lambda case, ours, theirs: theirs in (-30, 70),
        "the decoder makes a bound of what is beyond it",
    ),
    (
        "kkm", ["temperature", "humidity"], lambda case, ours, theirs: None not in (ours, theirs) and (ours < 0 or 0 <= theirs - ours < 1.56),
        "the second byte is in 1/256 in the maker's library; the decoder reads it as hundredths",
    ),
    (
        "kkm", None, lambda case, ours, theirs: not case["recorded"] and not case["payload"].startswith("21010f"),
        "the decoder takes any mask as that of a K6",
    ),
    (
        "mibeacon", ["motion"], lambda case, ours, theirs: ours is True and theirs is None,
        "the decoder reports a motion of object 0003 as an event without a value",
    ),
    (
        "mibeacon", ["illuminance"], lambda case, ours, theirs: "0f0003" in case["payload"] and theirs is None,
        "object 000F has the light intensity; for some models the decoder makes of it only whether there is light",
    ),
    (
        "mibeacon", ["battery_level"], lambda case, ours, theirs: "035401" in case["payload"] and theirs is None,
        "object 5403 is that of bleparser",
    ),
    ("mikrotik", ["temperature"], is_unknown(-128), "8000 stands for no thermometer in the maker's document"),
    (
        "moat", ["humidity"], lambda case, ours, theirs: None not in (ours, theirs) and ours == min(max(theirs, 0), 100),
        "no humidity is below 0 or above 100 %",
    ),
    (
        "mopeka", ["battery_voltage"], lambda case, ours, theirs: ours is not None and theirs == ours + 4,
        "bit 7 of the battery is reserved in the maker's document; the decoder counts it as 4 V",
    ),
    (
        "qingping", ["battery_level"], lambda case, ours, theirs: not case["recorded"] and case["payload"].count("0201") > 1,
        "of two objects of one kind the first counts",
    ),
    (
        "qingping", ["co2"], lambda case, ours, theirs: not case["recorded"] and case["payload"].count("13") > 1,
        "of two objects of one kind the first counts",
    ),
    (
        "qingping", ["battery_level"], lambda case, ours, theirs: ours is None and theirs == 100,
        "a battery above 100 % is unknown; the decoder makes 100 % of it",
    ),
    (
        "ruuvitag", ["humidity"], lambda case, ours, theirs: case["payload"].startswith("03") and theirs is None,
        "the maker's document of format 3 has vectors above 100 %",
    ),
    ("ruuvitag", ["movement_counter"], is_unknown(255), "255 stands for unknown in the maker's document"),
    (
        "sensirion", ["humidity"], lambda case, ours, theirs: None not in (ours, theirs) and ours == min(max(theirs, 0), 100),
        "the maker's document limits the humidity to 0 to 100 %",
    ),
    (
        "govee", None, lambda case, ours, theirs: theirs == "error",
        "the decoder reports impossible values and errors of the sensor as a text",
    ),
    (
        "govee", None, lambda case, ours, theirs: ours is not None and ours < 0 and theirs == 0,
        "the decoder makes 0 °C of what is below it",
    ),
    (
        "mopeka", ["battery_level"], lambda case, ours, theirs: ours is not None and theirs == 100,
        "bit 7 of the battery is reserved in the maker's document; the decoder counts it as 4 V",
    ),
    (
        "rapt-pill", ["battery_level"], lambda case, ours, theirs: not case["recorded"] and not 0 <= theirs <= 100,
        "a battery above 100 % is full, and one below 0 % is empty",
    ),
    (
        "thermopro", ["battery_level"],
        lambda case, ours, theirs: case["stream"] == "probe" and None not in (ours, theirs) and abs(ours - theirs) < 2,
        "the table of the discharge has a point every 100 mV",
    ),
    ("thermopro", ["battery_level"], lambda case, ours, theirs: case["stream"] == "climate", "the maker's app shows three levels, of which the decoder makes %"),
    (
        "relsib", ["temperature"], lambda case, ours, theirs: ours is not None and abs(theirs - ours - 655.36) < 0.01,
        "below 0 °C the number is negative",
    ),
    (
        "relsib", ["battery_level"], lambda case, ours, theirs: ours is None and theirs == 100,
        "a monitor that is plugged in sends no battery level; the decoder makes 100 % of it",
    ),
    ("leaone", ["impedance"], is_unknown(0.0), "an impedance of 0 is none"),
    (
        "mibeacon", ["light"], lambda case, ours, theirs: ours is None and "0f0003" in case["payload"],
        "object 000F has the light intensity; for some models the decoder makes of it only whether there is light",
    ),
    (
        "tilt", None, lambda case, ours, theirs: ours is None and "03e7" in case["payload"],
        "999 °F is no temperature: the message has the version of the firmware and the age of the battery",
    ),
    (
        "tilt", None, lambda case, ours, theirs: not case["recorded"] and None not in (ours, theirs),
        "the bounds by which a Tilt Pro is told apart differ for impossible values",
    ),
    (
        "switchbot", ["battery_level"], lambda case, ours, theirs: not case["recorded"],
        "the mutated data have two different batteries, of which the decoder prefers the other",
    ),
    (
        "switchbot", ["temperature", "humidity"], lambda case, ours, theirs: case["stream"] == "hub3" and ours is None,
        "a Hub 3 without its cable has no sensor; the decoder reports zeros",
    ),
    ("switchbot-appliances", ["work_status"], lambda case, ours, theirs: "k10" in case["stream"] and ours is None, "nobody knows what this bit of a K10+ means"),
    ("switchbot-covers", ["is_on"], lambda case, ours, theirs: ours is None and not theirs, "a Bot that presses is neither on nor off"),
    ("switchbot-lights", ["color_mode"], lambda case, ours, theirs: "ceiling" in case["stream"] and ours is None, "a Ceiling Light has one mode, which it does not send"),
    ("switchbot-lights", ["color_temperature"], is_unknown(0), "a light of 0 K has a colour instead"),
    (
        "oral-b", ["state"], lambda case, ours, theirs: (ours, theirs) == ("statistics", "post brushing statistics"),
        "two names of one state",
    ),
    (
        "oral-b", ["mode"], lambda case, ours, theirs: not case["recorded"],
        "the mutated model has other modes",
    ),
    (
        "sensirion", ["humidity"], lambda case, ours, theirs: not case["recorded"],
        "the mutated sample type has another formula",
    ),
    (
        "vegtrug", ["temperature"], lambda case, ours, theirs: ours is not None and abs(theirs - ours - 6553.6) < 0.01,
        "below 0 °C the number is negative, as in Theengs Decoder",
    ),
    (
        "victron", None, lambda case, ours, theirs: not case["recorded"] and (
            case["stream"] == "energy_meter" or case["stream"] == "inverter" and case["payload"][8:10] != "03"
        ),
        "the mutated record type has other fields",
    ),
    (
        "victron", ["consumed"], lambda case, ours, theirs: case["stream"] == "bms" and ours == -theirs,
        "the maker's document counts the consumed charge as negative, in all records",
    ),
    ("victron", ["state_of_charge"], is_unknown(102.3), "3FF stands for unknown in the maker's document"),
    ("victron", ["temperature"], is_unknown(382.2), "FFFF stands for unknown in the maker's document"),
    ("victron", ["midpoint_voltage"], is_unknown(655.35), "FFFF stands for unknown in the maker's document"),
    ("victron", ["starter_voltage"], is_unknown(327.67), "7FFF stands for unknown in the maker's document"),
    ("victron", ["current"], is_unknown(-0.001), "3FFFFF stands for unknown in the maker's document"),
]
