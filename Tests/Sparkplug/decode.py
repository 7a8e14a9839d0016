"""Decodes Sparkplug messages with a library from the package index, for a comparison with what gattherd meant.

Usage: decode.py pysparkplug|wrapper, with one message a line on standard input: its type and its bytes as hexadecimal
digits. Prints one JSON object a line.
"""

import json
import struct
import sys


DOUBLE_ARRAY, STRING_ARRAY = 31, 33


def with_pysparkplug():
    """The library's own classes, which resolve aliases and datatypes by the last birth."""
    import pysparkplug

    kinds = {
        "NBIRTH": pysparkplug.NBirth, "DBIRTH": pysparkplug.DBirth, "NDATA": pysparkplug.NData,
        "DDATA": pysparkplug.DData, "NDEATH": pysparkplug.NDeath, "DDEATH": pysparkplug.DDeath,
    }
    births = {}

    def decode(kind, scope, raw):
        birth = births.get(scope) if kind.endswith("DATA") else None
        payload = kinds[kind].decode(raw, birth=birth)
        if kind.endswith("BIRTH"):
            births[scope] = payload
        if kind == "NDEATH":
            return {"metrics": [{"name": "bdSeq", "value": payload.bd_seq_metric.value}]}
        metrics = [
            {
                "name": metric.name, "timestamp": metric.timestamp, "historical": metric.is_historical,
                "value": metric.value,
            }
            for metric in getattr(payload, "metrics", ())
        ]
        return {"timestamp": payload.timestamp, "seq": payload.seq, "metrics": metrics}

    return decode


def with_wrapper():
    """Google's protobuf with the definitions of the library; aliases and datatypes are resolved here."""
    from mqtt_spb_wrapper.spb_protobuf import MetricDataType, Payload

    def value(metric):
        field = metric.WhichOneof("value")
        if metric.is_null or field is None:
            return None
        number = getattr(metric, field)
        if metric.datatype == DOUBLE_ARRAY:
            return struct.unpack(f"<{len(number) // 8}d", number)
        if metric.datatype == STRING_ARRAY:
            return [text.decode() for text in number.split(b"\0")[:-1]]
        return number - (1 << 64) if metric.datatype == MetricDataType.Int64 and number >> 63 else number

    births = {}

    def decode(kind, scope, raw):
        payload = Payload.FromString(raw)
        if kind.endswith("BIRTH"):
            births[scope] = {metric.alias: metric for metric in payload.metrics if metric.HasField("alias")}
        metrics = []
        for metric in payload.metrics:
            known = births.get(scope, {}).get(metric.alias) if not metric.HasField("name") else None
            if known:
                metric.name = known.name
                metric.datatype = known.datatype
            metrics.append(
                {
                    "name": metric.name, "timestamp": metric.timestamp, "historical": metric.is_historical,
                    "value": value(metric),
                }
            )
        if kind == "NDEATH":
            return {"metrics": [{"name": metric["name"], "value": metric["value"]} for metric in metrics]}
        return {"timestamp": payload.timestamp, "seq": payload.seq, "metrics": metrics}

    return decode


def plain(value):
    """Makes a value of any library comparable."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def main():
    decode = {"pysparkplug": with_pysparkplug, "wrapper": with_wrapper}[sys.argv[1]]()
    for line in sys.stdin:
        kind, scope, digits = line.split()
        message = decode(kind, scope, bytes.fromhex(digits))
        for metric in message["metrics"]:
            metric["value"] = plain(metric["value"])
        print(json.dumps(message, sort_keys=True), flush=True)


main()
