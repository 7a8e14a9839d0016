import FoundationEssentials
import GattherdConfig
import GattherdDBus
import GattherdDaemon
import GattherdDelivery
import GattherdLog
import GattherdMachines

// What a room wants to know, from what the configuration says.

extension HerdDevice {
    init(_ settings: DeviceSettings) {
        self.init(
            name: settings.name.value,
            address: settings.address.value,
            profileNames: settings.profiles?.map(\.value),
            usesSocket: settings.notify.map { $0 == .socket },
            adapter: settings.adapter?.value,
            pairing: DevicePairing(settings)
        )
    }
}

extension DevicePairing {
    init(_ settings: DeviceSettings) {
        let way: Way =
            switch settings.pairing {
            case .never: .never
            case .onDemand: .onDemand
            case .justWorks: .justWorks
            case .compare: .compare
            case .passkey: settings.pinFile.map { .passkey(file: $0.value) } ?? .never
            }
        self.init(way, repairsBond: settings.onBondLoss == .repair)
    }
}

extension HerdRunner.Settings {
    init(_ settings: BluetoothSettings) {
        self.init(connectTimeout: settings.connectTimeout, keepsLinksOnStop: settings.keepsLinksOnStop)
        policy.recovery.mayPowerCycle = settings.mayPowerCycle
        if case .only(let addresses) = settings.adapters { adapters = Set(addresses) }
    }
}

extension DBusAddress {
    init(_ bus: BusChoice) {
        switch bus {
        case .system: self = .system
        case .session: self = .session
        case .address(let address): self = .address(address)
        }
    }
}

extension DeliverySettings {
    /// - Throws: ``Failure`` when the password's file cannot be read, or what is asked for is not there yet.
    init(_ settings: MQTTSettings, gateway: String) throws(Failure) {
        self.init(gateway: gateway, host: settings.broker.host, port: settings.broker.port)
        guard !settings.broker.usesTLS else {
            throw Failure(
                .configuration,
                "gattherd: mqtts:// is not supported yet; use mqtt:// within a trusted network"
            )
        }
        version = settings.version == .v5 ? .v5 : .v311
        clientID = settings.clientID
        username = settings.username
        password = try settings.passwordFile.map { (file) throws(Failure) in try Self.secret(in: file) }
        retainsReadings = settings.retains
    }

    /// The first line of a file.
    private static func secret(in file: Located<String>) throws(Failure) -> Secret {
        guard let data = FileManager.default.contents(atPath: file.value) else {
            let problem = ConfigProblem.unreadable(reason: "no password can be read from '\(file.value)'")
            let error = file.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: file.value)
            throw Failure(.configuration, error.description)
        }
        return Secret(String(decoding: data.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}

extension LogForm {
    init(_ format: LogSettings.Format) {
        switch format {
        case .auto: self = .automatic
        case .text: self = .text(hasColour: false)
        case .json: self = .json
        case .journald: self = .journald
        }
    }
}

extension LogLevel {
    init(_ level: LogSettings.Level) {
        switch level {
        case .trace: self = .trace
        case .debug: self = .debug
        case .info: self = .info
        case .notice: self = .notice
        case .warning: self = .warning
        case .error: self = .error
        }
    }
}
