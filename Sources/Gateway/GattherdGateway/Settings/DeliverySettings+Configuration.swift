import FoundationEssentials
package import GattherdConfig
package import GattherdDelivery
package import GattherdLog
import GattherdMQTT
import GattherdMachines
package import GattherdModel
import GattherdSparkplug
import GattherdSync
import Glibc

// Delivery's settings, from the configuration and the files that it names.

extension DeliverySettings {
    /// - Throws: ``GatewayError`` when a file that the section names cannot be used.
    package init(
        _ settings: MQTTSettings,
        gateway: String,
        devices: [DeviceSettings],
        alerts: [AlertRule] = [],
        http: HTTPSettings? = nil,
        log: Log
    ) throws(GatewayError) {
        for finding in settings.findings {
            guard finding.severity == .warning else { throw GatewayError(ConfigErrors([finding])) }
            log(.warning, "a file that the configuration names has a problem", [.init("advice", finding.problem)])
        }
        self.init(gateway: gateway, host: settings.broker.host, port: settings.broker.port)
        version = settings.version == .v5 ? .v5 : .v311
        baseTopic = settings.baseTopic
        clientID = settings.clientID
        username = settings.username
        password = settings.passwordFile.flatMap { SecretFile(path: $0.value).secret }
        publishing = PublishingRules(settings, devices)
        options.pace = TokenBucket(rate: Double(settings.backlogRate))
        permissions = ControlPermissions(settings, devices)
        publishesDescriptions = settings.publishesDescriptions
        homeAssistant.isDiscoverable = settings.homeAssistant.isDiscoverable
        homeAssistant.prefix = settings.homeAssistant.prefix
        homeAssistant.version = GattherdVersion.current
        homeAssistant.configurationURL = http?.dashboard
        presentation = Presentation(devices, alerts)
        tls = settings.broker.usesTLS ? TLSSettings(settings.tls) : nil
    }
}

extension Presentation {
    init(_ devices: [DeviceSettings], _ alerts: [AlertRule]) {
        self.init()
        let labels = devices.map { ($0.name.value, DeviceLabel(title: $0.title, area: $0.area)) }
        self.labels = Dictionary(labels.filter { $0.1 != DeviceLabel() }) { first, _ in first }
        self.alerts = alerts
    }
}

extension DeliverySettings {
    /// Saves the base topic in a folder, and finds the former ones there.
    mutating func rememberBase(in folder: String) {
        let file = BaseTopicFile(path: folder + "/mqtt-base-topics")
        formerBases = file.use(baseTopic, at: target)
        forgetBase = { base in _ = NamedThread.start(name: "mqtt-file") { file.forget(base) } }
    }
}

extension HTTPSettings {
    /// The dashboard's address; `nil` if other hosts cannot open it.
    var dashboard: String? {
        guard !listen.isLoopback else { return nil }
        let isEverywhere = ["0.0.0.0", "::"].contains(listen.host)
        let host = isEverywhere ? hosts.first ?? HostName.current : listen.host
        return "http://\(host.contains(":") ? "[\(host)]" : host):\(listen.port)/"
    }
}

extension ControlPermissions {
    init(_ settings: MQTTSettings, _ devices: [DeviceSettings]) {
        self.init(settings.setsControls ? devices : [])
        isEverythingAllowed = settings.setsControls
    }

    /// The controls that the devices' sections allow to be set.
    init(_ devices: [DeviceSettings]) {
        self.init()
        for device in devices { self.devices[device.name.value] = device.controls.map { Set($0.map(\.value)) } }
    }
}

extension PublishingRules {
    init(_ settings: MQTTSettings, _ devices: [DeviceSettings]) {
        self.init()
        var base = settings.publish
        base.retains = base.retains ?? settings.retains
        all = StreamPublishing(base)
        for device in devices where device.publish != DevicePublishSettings() {
            let common = device.publish.all.refining(base)
            var rules = Device(all: StreamPublishing(common))
            for (stream, own) in device.publish.streams {
                rules.streams[stream.value] = StreamPublishing(own.refining(common))
            }
            self.devices[device.name.value] = rules
        }
    }
}

extension StreamPublishing {
    init(_ settings: PublishSettings) {
        self.init()
        let hasDeadband = settings.deadband != nil || !settings.deadbands.isEmpty
        policy.isOnChange = settings.isOnChange ?? hasDeadband
        policy.deadband = settings.deadband ?? 0
        for (metric, deadband) in settings.deadbands { policy.deadbands[metric.value] = deadband }
        policy.minimumInterval = settings.minimumInterval
        policy.heartbeat = settings.heartbeat
        isAcknowledged = settings.qos != .zero
        isRetained = settings.retains ?? true
        hasScalars = settings.hasScalars ?? false
        expiry = settings.expiry
        batch = settings.batch.flatMap { $0 > .zero ? $0 : nil }
    }
}
