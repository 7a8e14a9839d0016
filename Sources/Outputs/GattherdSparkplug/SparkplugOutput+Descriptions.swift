package import GattherdConfig

extension SparkplugOutput {
    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription("An edge node of Sparkplug B at an MQTT broker."),
        "client_id": ConfigDescription(
            "The client identifier, unique at the broker.",
            example: "edge-lab-1",
            otherwise: "made of the group and the node"
        ),
        "group": ConfigDescription("The id of the group.", example: "site-1", otherwise: "gattherd"),
        "node": ConfigDescription("The id of the edge node.", example: "lab-1", otherwise: "the gateway's name"),
        "primary_host": ConfigDescription(
            "The host application that must be online before anything is published.",
            example: "scada",
            otherwise: "none"
        ),
        "controls": ConfigDescription("False if hosts may set no control.", default: "true"),
        "on_change": ConfigDescription("True to leave out values that equal those before.", default: "false"),
    ]
}
