extension ConfigDescriptions {
    static let mqtt: [String: ConfigDescription] = [
        "mqtt": ConfigDescription("The MQTT broker. Without this section nothing is published by MQTT."),
        "mqtt.url": ConfigDescription("The broker; mqtts:// for TLS.", example: "mqtt://localhost:1883"),
        "mqtt.version": ConfigDescription("The version of MQTT.", example: "3.1.1", default: "5"),
        "mqtt.client_id": ConfigDescription(
            "The client identifier, unique at the broker.",
            example: "gattherd-lab-1",
            otherwise: "gattherd- and the gateway's name"
        ),
        "mqtt.username": ConfigDescription("The user at the broker.", example: "gateway", otherwise: "none"),
        "mqtt.password_file": ConfigDescription(
            "A file whose first line is the password. Passwords cannot be written here.",
            example: "/etc/gattherd/mqtt-password",
            otherwise: "none"
        ),
        "mqtt.base_topic": ConfigDescription(
            "The levels above all topics, 1 to 8. Each gateway needs its own.",
            example: "site-1/lab-1",
            otherwise: "gattherd/ and the gateway's name"
        ),
        "mqtt.descriptions": ConfigDescription(
            "True to publish a retained description of each device's streams and controls.",
            example: "true",
            default: "false"
        ),
        "mqtt.retain": ConfigDescription(
            "True if readings are retained: new subscribers receive the newest one at once.",
            default: "true"
        ),
        "mqtt.controls": ConfigDescription("False if no control can be set by MQTT.", default: "true"),
        "mqtt.backlog_rate": ConfigDescription(
            """
            The least rate, in messages with readings per second, at which the backlog is sent after the broker was \
            away. It is never less than twice the incoming rate. Choose less for slow subscribers.
            """,
            default: "4000"
        ),
        "mqtt.home_assistant": ConfigDescription("The announcement of devices to Home Assistant."),
        "mqtt.home_assistant.discovery": ConfigDescription(
            "False to announce nothing; earlier announcements are removed.",
            default: "true"
        ),
        "mqtt.home_assistant.prefix": ConfigDescription(
            "The first level of Home Assistant's topics.",
            default: "homeassistant"
        ),
        "mqtt.home_assistant.statistics": ConfigDescription(
            "The import of hourly statistics into Home Assistant, so that outages leave no gaps there."
        ),
        "mqtt.home_assistant.statistics.url": ConfigDescription(
            "Home Assistant's address; https:// for TLS.",
            example: "http://homeassistant.local:8123"
        ),
        "mqtt.home_assistant.statistics.token_file": ConfigDescription(
            "A file whose first line is a long-lived access token of an administrator. Tokens cannot be written here.",
            example: "/etc/gattherd/home-assistant-token"
        ),
        "mqtt.home_assistant.statistics.tls": ConfigDescription("Certificates, for https:// only."),
        "mqtt.home_assistant.statistics.tls.ca": ConfigDescription(
            "A PEM file with the authorities that sign the server's certificate.",
            example: "ca.pem",
            otherwise: "the system's"
        ),
        "mqtt.home_assistant.statistics.tls.certificate": ConfigDescription(
            "A PEM file with the client certificate, for servers that require one; `key` goes with it.",
            example: "gateway.pem",
            otherwise: "none"
        ),
        "mqtt.home_assistant.statistics.tls.key": ConfigDescription(
            "A PEM file with the key of the client certificate.",
            example: "gateway.key",
            otherwise: "none"
        ),
        "mqtt.tls": ConfigDescription("Certificates, for an encrypted connection only."),
        "mqtt.tls.ca": ConfigDescription(
            "A PEM file with the authorities that sign the server's certificate.",
            example: "ca.pem",
            otherwise: "the system's"
        ),
        "mqtt.tls.certificate": ConfigDescription(
            "A PEM file with the client certificate, for servers that require one; `key` goes with it.",
            example: "gateway.pem",
            otherwise: "none"
        ),
        "mqtt.tls.key": ConfigDescription(
            "A PEM file with the key of the client certificate.",
            example: "gateway.key",
            otherwise: "none"
        ),
        "mqtt.tls.server_name": ConfigDescription(
            "The name that the server's certificate must be for.",
            example: "broker.lan",
            otherwise: "the host of the URL"
        ),
        "mqtt.tls.min_version": ConfigDescription("The oldest version of TLS.", example: "1.3", default: "1.2"),
        "mqtt.publish": ConfigDescription(
            "Publishing rules. History keeps all readings in any case. Times are those of the readings."
        ),
        "mqtt.publish.on_change": ConfigDescription(
            "True to publish only readings that differ from the last published one.",
            example: "true",
            otherwise: "true with a `deadband`, otherwise false"
        ),
        "mqtt.publish.deadband": ConfigDescription(
            "The smallest difference that counts, for all metrics or for each.",
            example: "0.2",
            otherwise: "0"
        ),
        "mqtt.publish.deadband.NAME": ConfigDescription("The deadband of one metric.", example: "0.2"),
        "mqtt.publish.min_interval": ConfigDescription(
            """
            The shortest time between two messages: of the readings in between, the last one is published when the time is \
            over.
            """,
            example: "1s",
            otherwise: "none"
        ),
        "mqtt.publish.heartbeat": ConfigDescription(
            "Publishes an unchanged reading after this time.",
            example: "1h",
            otherwise: "never"
        ),
        "mqtt.publish.qos": ConfigDescription("The quality of service.", example: "0", otherwise: "1"),
        "mqtt.publish.retain": ConfigDescription("As `mqtt.retain`.", example: "false", otherwise: "`mqtt.retain`"),
        "mqtt.publish.scalar": ConfigDescription(
            "True to also publish each metric on a topic of its own, as a bare value with QoS 0.",
            example: "true",
            otherwise: "false"
        ),
        "mqtt.publish.expiry": ConfigDescription(
            "The time for which an MQTT 5 broker keeps a reading for an absent subscriber.",
            example: "1h",
            otherwise: "forever"
        ),
        "mqtt.publish.batch": ConfigDescription(
            "Publishes the readings of a stream that arrive within this time as one array.",
            example: "100ms",
            otherwise: "off"
        ),
    ]
}
