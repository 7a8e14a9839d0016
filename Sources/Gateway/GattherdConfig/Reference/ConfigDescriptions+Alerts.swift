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
