"""Compares payloads that the standard profiles decoded with independent decoders from the Python package index.

The argument is a file of JSON lines: profile, stream, name and parts of an advertisement, address, key, and the decoded
values or the reason of the reject. Each difference needs a judgement in judgements.py, or the exit status is 1.
"""
import collections
import json
import logging
import math
import sys

import judgements
import oracles


def is_missing(value):
    return value is None or isinstance(value, float) and not math.isfinite(value)


def is_equal(ours, theirs, tolerance):
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in (ours, theirs)):
        return str(ours).lower() == str(theirs).lower()
    return abs(ours - theirs) <= tolerance + 1e-9 + 1e-5 * abs(theirs)


def differences(case, theirs):
    """Yields (metric, our value, their value) for each metric that both sides know and that differs."""
    ours = case.get("values", {})
    for metric, keys, tolerance, *factor in oracles.METRICS[case["profile"]]:
        mine = ours.get(metric)
        other = next((theirs[key] for key in keys.split() if theirs.get(key) is not None), None)
        if factor and not is_missing(other):
            other *= factor[0]
        if is_missing(mine) and is_missing(other):
            continue
        # A mutation can make another model of a payload, or an impossible value, which one of both leaves out.
        if not case["recorded"] and (is_missing(mine) or is_missing(other)):
            continue
        if is_missing(mine) or is_missing(other) or not is_equal(mine, other, tolerance):
            yield metric, mine, other


def main(path):
    logging.disable(logging.CRITICAL)
    cases = [json.loads(line) for line in open(path, encoding="utf-8")]
    compared, values = collections.Counter(), collections.Counter()
    judged, unknown = collections.Counter(), []
    for case in cases:
        decode = oracles.DECODERS.get(case["profile"])
        # A payload that one of both rejects has no values to compare.
        if decode is None or "values" not in case:
            continue
        theirs = decode(case)
        if not theirs:
            continue
        compared[case["profile"]] += 1
        values[case["profile"]] += len(theirs)
        for metric, mine, other in differences(case, theirs):
            reason = judgements.reason(case, metric, mine, other)
            if reason:
                judged[(case["profile"], reason)] += 1
            else:
                unknown.append((case, metric, mine, other))
    for profile in sorted(compared):
        print(f"{profile}: {compared[profile]} payloads, {values[profile]} values")
    for (profile, reason), count in sorted(judged.items()):
        print(f"{profile}: {count} differences: {reason}")
    for case, metric, mine, other in unknown[:40]:
        print(f"unexplained: {case['profile']} {case['stream']} {case['payload']} {metric}: {mine!r}, not {other!r}")
    missing = sorted(set(oracles.DECODERS) - set(compared))
    if missing:
        print(f"nothing was compared for {', '.join(missing)}")
    print(f"{sum(compared.values())} payloads compared, {sum(judged.values())} differences explained, {len(unknown)} not")
    return 1 if unknown or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
