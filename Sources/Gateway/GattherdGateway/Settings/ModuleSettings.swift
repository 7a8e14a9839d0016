package import GattherdBlueZ
package import GattherdConfig
package import GattherdDaemon
import GattherdHistory
import GattherdLog
import GattherdMachines
import GattherdModel
package import GattherdProfiles

// The settings of other modules, from the configuration.

extension SupervisedDevice {
    package init(_ settings: DeviceSettings, _ registry: ProfileRegistry = ProfileRegistry()) {
        self.init(
            name: settings.name.value,
            address: settings.address.value,
            profileNames: settings.profiles?.map(\.value),
            usesSocket: settings.notify.map { $0 == .socket },
            adapter: settings.adapter?.value,
            pairing: DevicePairing(settings),
            silence: DeviceSilence(settings.silence),
            listening: settings.listening(with: registry),
            options: settings.options.mapValues(\.value)
        )
    }
}

extension DeviceSilence {
    init(_ settings: SilenceSettings) {
        let streams = settings.streams.map { ($0.key.value, $0.value) }
        self.init(all: settings.all?.value, streams: Dictionary(streams) { first, _ in first })
    }
}

extension DevicePairing {
    init(_ settings: DeviceSettings) {
        let method: Method =
            switch settings.pairing {
            case .never: .never
            case .onDemand: .onDemand
            case .justWorks: .justWorks
            case .compare: .compare
            case .passkey: settings.pinFile.map { .passkey(file: $0.value) } ?? .never
            }
        self.init(method, repairsBond: settings.onBondLoss == .repair)
    }
}

extension Supervisor.Settings {
    init(_ settings: BluetoothSettings, leases: LeaseBoard? = nil) {
        self.init(connectTimeout: settings.connectTimeout, keepsLinksOnStop: settings.keepsLinksOnStop)
        self.leases = leases
        policy.recovery.mayPowerCycle = settings.mayPowerCycle
        policy.rotation = settings.rotate
        if case .only(let addresses) = settings.adapters { adapters = Set(addresses) }
        describe = { PresentationProfile.make(of: $0, taken: $1) }
        addressHash = { AddressHash.compute($1, with: $0) }
    }
}

extension HistoryOptions {
    init(_ configuration: Configuration) {
        self.init(
            path: configuration.history.path.value,
            consumers: configuration.consumers,
            clock: SystemClock.gateway
        )
        limits = HistoryLimits(configuration.history)
        whenFull = configuration.history.whenFull == .hold ? .hold : .deliver
    }
}

extension HistoryLimits {
    init(_ settings: HistorySettings) {
        self.init(
            samples: settings.keep.samples.duration,
            minutes: settings.keep.minutes.duration,
            hours: settings.keep.hours.duration,
            maxSize: Int64(clamping: settings.maxSize)
        )
        backlogAge = settings.backlog.keep.duration
        backlogSize = Int64(clamping: settings.backlog.maxSize)
    }
}

extension RetentionPeriod {
    /// The duration; `nil` for `forever`.
    var duration: Duration? {
        switch self {
        case .forever: nil
        case .atLeast(let duration): duration
        }
    }
}

extension BluetoothBus {
    package init(_ bus: BusChoice) {
        switch bus {
        case .system: self = .system
        case .session: self = .session
        case .address(let address): self = .address(address)
        }
    }
}

extension LogFormat {
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
