extension ConfigDescriptions {
    static let devices: [String: ConfigDescription] = [
        "devices": ConfigDescription(
            "Only devices listed here, or added by a rule of `enrol`, are ever connected."
        ),
        "devices.name": ConfigDescription(
            "The device's name in topics and queries: 1 to 64 of a-z, 0-9, '_' and '-'; unique.",
            example: "strap"
        ),
        "devices.address": ConfigDescription("The peripheral's address; unique.", example: "\"C0:FF:EE:00:00:01\""),
        "devices.title": ConfigDescription(
            "The name for people, in the dashboard and in Home Assistant. Topics and history keep `name`.",
            example: "Chest strap",
            otherwise: "the name"
        ),
        "devices.area": ConfigDescription(
            "The room or the place, by which the dashboard groups devices, and for Home Assistant.",
            example: "Gym",
            otherwise: "none"
        ),
        "devices.note": ConfigDescription(
            "A remark, which the dashboard shows.",
            example: "Battery changed in May",
            otherwise: "none"
        ),
        "devices.profiles": ConfigDescription(
            "The profiles that decode it. Profiles of advertisements make it a sensor, which is never connected.",
            example: "[heart-rate]",
            otherwise: "each profile that matches its services"
        ),
        "devices.adapter": ConfigDescription(
            "The only adapter to use.",
            example: "\"00:1A:7D:DA:71:13\"",
            otherwise: "the best one that hears the device and has a free link"
        ),
        "devices.notify": ConfigDescription(
            """
            The way in which notifications arrive. A socket costs the D-Bus daemon nothing, but excludes other programs \
            and loses values while gattherd is stalled.
            """,
            example: "socket",
            otherwise: "the profile's choice"
        ),
        "devices.pairing": ConfigDescription(
            "When and how the device is paired.",
            example: "just_works",
            otherwise: "passkey with a `pin_file`, otherwise on_demand",
            choices: [
                "on_demand": "Pairs without authentication when an operation needs encryption.",
                "just_works": "Pairs without authentication right after connecting.",
                "compare": "Confirms the number without a person.",
                "passkey": "Pairs with the passkey of `pin_file` only.",
                "never": "Does not pair.",
            ]
        ),
        "devices.pin_file": ConfigDescription(
            "A file whose first line is the passkey: six digits.",
            example: "/run/credentials/strap",
            otherwise: "none"
        ),
        "devices.on_bond_loss": ConfigDescription(
            "The reaction to a device that has lost its bond.",
            example: "repair",
            default: "fail",
            choices: [
                "fail": "Its link fails until `gattherd bond forget`.",
                "repair": """
                gattherd removes the bond and pairs again; an attacker with the device's address could then take its place.
                """,
            ]
        ),
        "devices.bind_key_file": ConfigDescription(
            """
            For sensors that only advertise encrypted values: a file whose first line is the key, 32 hexadecimal \
            digits. Some Xiaomi devices have keys of 24.
            """,
            example: "/run/credentials/garden",
            otherwise: "none"
        ),
        "devices.irk_file": ConfigDescription(
            """
            For sensors with private addresses: a file whose first line is the identity resolving key, 32 hexadecimal \
            digits.
            """,
            example: "/run/credentials/tracker",
            otherwise: "none"
        ),
        "devices.gateways": ConfigDescription(
            "With `fleet.leases`, the gateways that may own the device. Without the centre, it belongs to the first.",
            example: "[attic, cellar]",
            otherwise: "all"
        ),
        "devices.silence": ConfigDescription(
            """
            The longest silence. After a duration the link is replaced. A sensor that only advertises is offline after this \
            time.
            """,
            example: "30s",
            otherwise: "the profile's choice, otherwise learned",
            choices: [
                "learned": """
                After about four usual pauses of a stream the link is probed, and replaced if the device does not answer.
                """,
                "never": "Silence is not watched.",
            ]
        ),
        "devices.silence.NAME": ConfigDescription("The longest silence of one stream.", example: "30s"),
        "devices.options": ConfigDescription("Options of its profiles."),
        "devices.options.NAME": ConfigDescription(
            "The value of one option, such as a wheel's circumference in mm.",
            example: "2096"
        ),
        "devices.controls": ConfigDescription(
            "The controls that MQTT clients may set.",
            example: "[number]",
            otherwise: "all controls of its profiles"
        ),
        "devices.publish": ConfigDescription(
            "Publishing rules. Keys that are missing here are taken from `mqtt.publish`."
        ),
        "devices.publish.streams": ConfigDescription("Rules for single streams."),
        "devices.publish.streams.NAME": ConfigDescription("The rules for one stream."),
        "enrol": ConfigDescription(
            """
            Rules that turn peripherals into devices. A peripheral must meet all conditions of `match`. The first matching \
            rule applies.
            """
        ),
        "enrol.name": ConfigDescription(
            "The pattern of names. It has {address} once; {profile} is the first matching profile.",
            example: "\"{profile}-{address}\""
        ),
        "enrol.profiles": ConfigDescription(
            "The profiles of the new device.",
            example: "[heart-rate]",
            otherwise: "every profile that matches its services"
        ),
        "enrol.match": ConfigDescription("The conditions, at least one."),
        "enrol.match.service": ConfigDescription(
            "A service that must be advertised.",
            example: "\"180d\"",
            otherwise: "any"
        ),
        "enrol.match.name": ConfigDescription(
            "The peripheral's name; * is any text, ? one character.",
            example: "\"Polar*\"",
            otherwise: "any"
        ),
        "enrol.match.model": ConfigDescription(
            "Brand and model, as `gattherd scan` shows them; * is any text, ? one character.",
            example: "\"Ruuvi *\"",
            otherwise: "any"
        ),
        "enrol.match.rssi_at_least": ConfigDescription("The weakest signal, in dBm.", example: "-85", otherwise: "any"),
        "enrol.forget_after": ConfigDescription(
            """
            The device is removed after this time without a sighting. A device that is not ready within ten minutes of its \
            enrolment is removed at once.
            """,
            default: "30d"
        ),
    ]

    static let fleet: [String: ConfigDescription] = [
        "fleet": ConfigDescription("The gateways that share one central history."),
        "fleet.leases": ConfigDescription(
            "true if the gateways agree by leases at the centre on which of them connects a device.",
            example: "true",
            default: "false"
        ),
        "fleet.publish": ConfigDescription(
            "With leases, the gateways that publish an advertising device by MQTT and Sparkplug.",
            example: "all",
            default: "owner",
            choices: ["owner": "The device's owner.", "all": "All that hear it."]
        ),
    ]

    static let history: [String: ConfigDescription] = [
        "history": ConfigDescription("The history in SQLite, and how long it is kept."),
        "history.path": ConfigDescription(
            "The SQLite file; the control socket is beside it.",
            example: "/var/lib/gattherd/gattherd.db",
            otherwise: """
                gattherd.db in $STATE_DIRECTORY, which systemd sets; otherwise in /var/lib/gattherd if this file is below \
                /etc; otherwise in this file's folder
                """
        ),
        "history.commit_interval": ConfigDescription(
            """
            The longest time that a reading waits to be committed with others. Readings do not wait once about five hundred \
            are there, or if nothing was committed recently.
            """,
            default: "100ms"
        ),
        "history.keep": ConfigDescription("Retention. Samples that have not been delivered are kept longer."),
        "history.keep.samples": ConfigDescription("Retention of samples and rejects.", default: "30d"),
        "history.keep.minutes": ConfigDescription("Retention of minute summaries and events.", default: "1y"),
        "history.keep.hours": ConfigDescription("Retention of hour summaries.", default: "forever"),
        "history.max_size": ConfigDescription(
            """
            The largest size of the file and its WAL. Above it the oldest rows are deleted first, undelivered readings last; \
            these are counted. Events and rejects have 1/32 each.
            """,
            default: "2GiB"
        ),
        "history.backlog": ConfigDescription(
            "Bounds of the readings that wait for delivery. Beyond them the oldest are dropped."
        ),
        "history.backlog.keep": ConfigDescription("The longest time.", example: "7d", default: "forever"),
        "history.backlog.max_size": ConfigDescription(
            "The largest total size of their payloads.",
            example: "500MiB",
            otherwise: "half of `history.max_size`"
        ),
        "history.when_full": ConfigDescription(
            "The use of readings while the disk is full or fails. Memory is bounded and losses are counted.",
            example: "hold",
            default: "deliver",
            choices: [
                "deliver": "They are published from memory, marked \"stored\":false, and never stored.",
                "hold": "They wait in memory until they can be stored.",
            ]
        ),
    ]
}
