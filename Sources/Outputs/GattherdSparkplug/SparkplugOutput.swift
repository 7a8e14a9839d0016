package import GattherdConfig
package import GattherdMQTT
package import GattherdModel
package import GattherdOutputs

/// The section `sparkplug`.
package struct SparkplugSettings: Hashable, Sendable {
    /// The connection; the other keys of `mqtt` have no meaning here.
    package var mqtt: MQTTSettings
    package var group = "gattherd"
    package var node: String
    /// The host application that births wait for.
    package var primaryHost: String?
    /// True if hosts may set controls.
    package var setsControls = true
    /// True to leave out values that equal the previous ones.
    package var isByException = false

    package init(mqtt: MQTTSettings, node: String) {
        self.mqtt = mqtt
        self.node = node
    }
}

/// The output `sparkplug`.
package enum SparkplugOutput: OutputDefinition {
    package static let section = "sparkplug"

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> SparkplugSettings? {
        let mqtt = environment.broker(
            section,
            title: "'sparkplug'",
            clientID: "gattherd-\(environment.gateway)-\(environment.name)"
        )
        let group = section.value("group", identifier)?.value
        let node = section.value("node", identifier)?.value
        let primaryHost = section.value("primary_host", identifier)?.value
        let setsControls = section.value("controls", .boolean)?.value
        let isByException = section.value("on_change", .boolean)?.value
        guard let mqtt else { return nil }
        var settings = SparkplugSettings(mqtt: mqtt, node: node ?? environment.gateway)
        settings.group = group ?? settings.group
        settings.primaryHost = primaryHost
        settings.setsControls = setsControls ?? settings.setsControls
        settings.isByException = isByException ?? settings.isByException
        return settings
    }

    private static var identifier: ConfigGrammar<String> {
        ConfigGrammar(noun: "a Sparkplug id", advice: "use 1 to 128 bytes without '+', '/' and '#'") { text in
            SparkplugTopics.isValid(identifier: text) ? text : nil
        }
    }

    package static func make(
        _ settings: SparkplugSettings,
        _ context: OutputContext
    ) throws(OutputError) -> any Output {
        let options = try options(settings, context)
        var permissions = context.permissions
        if !settings.setsControls { permissions = { ControlPermissions.nothing } }
        return SparkplugDelivery(
            options,
            journal: context.journal,
            log: context.log,
            setControl: context.setControl,
            permissions: permissions,
            isPublisher: context.isPublisher,
            record: context.record
        )
    }

    private static func options(
        _ settings: SparkplugSettings,
        _ context: OutputContext
    ) throws(OutputError) -> SparkplugOptions {
        let mqtt = settings.mqtt
        var options = SparkplugOptions(
            host: mqtt.broker.host,
            port: mqtt.broker.port,
            clientID: mqtt.clientID,
            group: settings.group,
            node: settings.node
        )
        options.name = context.name
        options.version = mqtt.version == .v5 ? .v5 : .v311
        options.username = mqtt.username
        if let file = mqtt.passwordFile {
            options.password = Secret(try context.readSecret(file.value, "password"))
        }
        options.tls = mqtt.broker.usesTLS ? TLSSettings(mqtt.tls) : nil
        options.primaryHost = settings.primaryHost
        options.isByException = settings.isByException
        options.softwareVersion = context.version
        options.sequenceFile = context.stateFolder.map { "\($0)/\(context.name)-bdseq" }
        return options
    }

    package static func files(_ settings: SparkplugSettings) -> [NamedFile] { settings.mqtt.files }

    /// Returns an error if the TLS files cannot be used.
    package static func findings(_ settings: SparkplugSettings) -> [ConfigError] {
        settings.mqtt.broker.usesTLS ? problem(of: settings.mqtt.tls) : []
    }

    private static func problem(of tls: MQTTSettings.TLS) -> [ConfigError] {
        do throws(TLSFileError) {
            try TLSSettings(tls).check()
            return []
        } catch {
            let file =
                switch error.role {
                case .ca: tls.ca
                case .certificate: tls.certificate
                case .key: tls.key
                case nil: Located<String>?.none
                }
            guard let place = file?.place else {
                return [ConfigError(.file(error.description), file: file?.value ?? "sparkplug.tls")]
            }
            return [ConfigError(.file(error.description), at: place)]
        }
    }
}

extension ControlPermissions {
    /// Permissions that allow nothing.
    fileprivate static var nothing: ControlPermissions {
        var permissions = ControlPermissions()
        permissions.isEverythingAllowed = false
        return permissions
    }
}

extension TLSSettings {
    /// The settings of a section `tls`, of Sparkplug or of MQTT.
    package init(_ settings: MQTTSettings.TLS) {
        self.init()
        ca = settings.ca?.value
        certificate = settings.certificate?.value
        key = settings.key?.value
        serverName = settings.serverName
        minimumVersion = settings.minimumVersion == .v13 ? .v13 : .v12
    }
}

extension SparkplugOutput {
    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription("An edge node of Sparkplug B at an MQTT broker."),
        "client_id": ConfigDescription(
            "The client identifier, unique at the broker.",
            example: "edge-lab-1",
            otherwise: "gattherd-GATEWAY-OUTPUT, with the names of both"
        ),
        "group": ConfigDescription("The id of the group.", example: "site-1", otherwise: "gattherd"),
        "node": ConfigDescription("The id of the edge node.", example: "lab-1", otherwise: "the gateway's name"),
        "primary_host": ConfigDescription(
            "The host application that must be online before anything is published.",
            example: "scada",
            otherwise: "none"
        ),
        "controls": ConfigDescription("False if hosts may set no control.", default: "true"),
        "on_change": ConfigDescription("True to leave out values that equal the previous ones.", default: "false"),
    ]
}
