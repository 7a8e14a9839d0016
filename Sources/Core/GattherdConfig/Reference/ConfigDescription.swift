/// The description of a key for people.
package struct ConfigDescription: Hashable, Sendable {
    /// A value that can be chosen, with its meaning.
    struct Choice: Hashable, Sendable {
        let value: String
        let meaning: String
    }

    /// The meaning, in whole sentences.
    let summary: String
    /// The values whose meanings are explained one by one.
    let choices: [Choice]
    /// An example of its value, as YAML in one line; `nil` for a section.
    package let example: String?
    /// The default as YAML; `nil` if there is none, or YAML cannot express it.
    package let standard: String?
    /// A description of the default, if YAML cannot express it.
    package let otherwise: String?

    /// - Parameters:
    ///   - text: The meaning, in whole sentences.
    ///   - example: An example of its value, as YAML in one line.
    ///   - standard: The default as YAML.
    ///   - otherwise: The default in words.
    ///   - choices: The meanings of values, in whole sentences.
    package init(
        _ text: String,
        example: String? = nil,
        default standard: String? = nil,
        otherwise: String? = nil,
        choices: KeyValuePairs<String, String> = [:]
    ) {
        (summary, self.example, self.standard, self.otherwise) = (text, example ?? standard, standard, otherwise)
        self.choices = choices.map { Choice(value: $0.key, meaning: $0.value) }
    }

    /// The meaning of the key and of its choices, as one paragraph.
    package var text: String { ([summary] + choices.map { "\($0.value): \($0.meaning)" }).joined(separator: " ") }
}

/// The descriptions of the keys that no output module describes.
///
/// Names are paths without indices: `devices.name` is the name of each device. `NAME` is a name that users choose.
enum ConfigDescriptions {
    /// Sections with the keys of another one, which pages describe once.
    static let repeated = ["devices.publish": "mqtt.publish", "devices.publish.streams.NAME": "mqtt.publish"]

    /// Sections whose keys use the descriptions of another section, unless they have their own.
    private static let alike = [("sparkplug.", "mqtt."), ("influx.tls.", "mqtt.tls."), ("influx.tls", "mqtt.tls")]

    /// Returns the description of a key; `nil` if there is none.
    static func description(of path: String, _ own: [String: ConfigDescription]) -> ConfigDescription? {
        if let found = own[path] ?? all[path] { return found }
        for (section, other) in alike where path.hasPrefix(section) {
            if let found = all[other + path.dropFirst(section.count)] { return found }
        }
        for (section, other) in repeated where path.hasPrefix(section + ".") {
            if let found = all[other + path.dropFirst(section.count)] { return found }
        }
        guard let dot = path.firstIndex(of: "."), !path[path.index(after: dot)...].contains(".") else { return nil }
        return common[String(path[path.index(after: dot)...])]
    }

    /// The keys that all outputs have.
    static let common: [String: ConfigDescription] = [
        "name": ConfigDescription(
            "The output's name in status, metrics and events, and that of its cursor. A list of sections needs it.",
            example: "archive",
            otherwise: "the section's name"
        ),
        "max_backlog": ConfigDescription(
            """
            The most journal entries that wait for the receiver, at least 1000. Beyond it the oldest are skipped, counted and \
            recorded.
            """,
            example: "1000000",
            otherwise: "they are held"
        ),
    ]

    static let all: [String: ConfigDescription] = [gateway, devices, fleet, alerts, history, mqtt, http]
        .reduce(into: [:]) { $0.merge($1) { first, _ in first } }

    private static let gateway: [String: ConfigDescription] = [
        "gateway": ConfigDescription(
            "The gateway's name in topics: 1 to 64 of a-z, 0-9, '_' and '-'.",
            example: "lab-1",
            otherwise: "the first label of the host name"
        ),
        "bluetooth": ConfigDescription("The local adapters."),
        "bluetooth.bus": ConfigDescription(
            "The bus of bluetoothd: system, session or a D-Bus address.",
            default: "system"
        ),
        "bluetooth.adapters": ConfigDescription(
            "The adapters that gattherd uses: auto, or a list of addresses.",
            example: "[\"00:1A:7D:DA:71:13\"]",
            default: "auto"
        ),
        "bluetooth.connect_timeout": ConfigDescription("The limit of one connection attempt.", default: "20s"),
        "bluetooth.keep_links_on_stop": ConfigDescription(
            "True to leave devices connected when the daemon stops.",
            default: "false"
        ),
        "bluetooth.power_cycle": ConfigDescription(
            """
            True to allow switching an adapter off and on if it has no link and for a long time neither found nor \
            connected a device.
            """,
            default: "true"
        ),
        "bluetooth.rotate": ConfigDescription(
            """
            For adapters that support fewer links than there are devices. A device that has waited this long replaces a \
            link of at least the same age. With off, the first devices keep their links.
            """,
            example: "5m",
            default: "off"
        ),
        "profiles": ConfigDescription("The profiles, which decode what devices send."),
        "profiles.paths": ConfigDescription(
            """
            Profiles (*.so, *.yaml) or folders of them. A list replaces the default. If several profiles serve the same \
            characteristic, the first one is used: by the order of this list, then by file name.
            """,
            example: "[/etc/gattherd/profiles, /usr/lib/gattherd/profiles]",
            otherwise: "/etc/gattherd/profiles and the folder installed with gattherd"
        ),
        "log": ConfigDescription("The log for people."),
        "log.level": ConfigDescription(
            """
            The least level that is written. With debug, the log has a line for each operation with a device; with \
            trace, also the bytes of all values.
            """,
            example: "debug",
            default: "info"
        ),
        "log.format": ConfigDescription(
            "With auto: journald under systemd, text on a terminal, otherwise JSON lines.",
            example: "json",
            default: "auto"
        ),
    ]

    private static let http: [String: ConfigDescription] = [
        "http": ConfigDescription(
            "The dashboard, the JSON API, and metrics for Prometheus. Without this section there is no HTTP."
        ),
        "http.listen": ConfigDescription("The address and the port.", example: "127.0.0.1:8780"),
        "http.token_file": ConfigDescription(
            """
            A file whose first line is the token, at least 16 characters. Clients that send it may write. On other \
            addresses than loopback every request needs it.
            """,
            example: "/etc/gattherd/http-token",
            otherwise: "none: the API is read-only"
        ),
        "http.hosts": ConfigDescription(
            "Host names that browsers may use, besides the addresses, localhost and the host name.",
            example: "[gateway.lan]",
            default: "[]"
        ),
        "http.sample_metrics": ConfigDescription(
            "True to add the newest sample of each metric of each connected device to the metrics for Prometheus.",
            default: "false"
        ),
    ]
}

extension ConfigDescriptions {
    static let alerts: [String: ConfigDescription] = [
        "alerts": ConfigDescription(
            """
            Rules that raise alerts: as events, by MQTT, in Home Assistant, `gattherd status` and the dashboard. Each has one \
            of `silent_for`, `battery_below` and `metric`.
            """
        ),
        "alerts.name": ConfigDescription("The alert's name, unique.", example: "freezer-warm"),
        "alerts.device": ConfigDescription("The device.", example: "freezer", otherwise: "every device"),
        "alerts.silent_for": ConfigDescription(
            "Raises the alert if no value arrives for this time. A device that a person disconnected is not missed.",
            example: "10m",
            otherwise: "none"
        ),
        "alerts.battery_below": ConfigDescription(
            "Raises the alert if a battery has less than this, in percent.",
            example: "15",
            otherwise: "none"
        ),
        "alerts.metric": ConfigDescription(
            "Raises the alert if a value of the metric is `below` or `above` a bound.",
            example: "temperature",
            otherwise: "none"
        ),
        "alerts.below": ConfigDescription("The lower bound of the metric.", example: "-30", otherwise: "none"),
        "alerts.above": ConfigDescription("The upper bound of the metric.", example: "-15", otherwise: "none"),
        "alerts.hysteresis": ConfigDescription(
            "The alert is cleared by a value that is inside by at least this.",
            example: "1",
            otherwise: "0"
        ),
        "alerts.for": ConfigDescription(
            "The time for which values must be outside before the alert is raised.",
            example: "5m",
            default: "0s"
        ),
    ]
}
