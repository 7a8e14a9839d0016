import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdGATT
import GattherdHTTP
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProfiles
import GattherdSync

extension Composition {
    /// Goes on with what the files say now; when that cannot be used, everything stays as it was.
    ///
    /// - Returns: What came of it; `nil` when the daemon ends before the files are read.
    func reload(_ file: ConfigurationFile) async -> ReloadOutcome? {
        SystemdNotifier.reloading()
        // A plugin or a file system that hangs must hold nobody else up, nor the end.
        let enrolled = configuration.devices.compactMap { EnrolledDevice($0) }
        let read = await NamedThread.result(name: "reload") {
            Result { () throws(GatewayError) in try Reading(file, enrolled: enrolled, profiles) }
        }
        guard let read else { return nil }
        let outcome: ReloadOutcome
        do throws(GatewayError) {
            outcome = .done(waiting: await adopt(try read.get()))
        } catch {
            outcome = .failed(error.message)
            log(
                .error,
                "the configuration is not reloaded; the old one goes on",
                [.init("reason", error.message)]
            )
            gateway.recorder.record(
                kind: "daemon",
                ["state": .text("reload_failed"), "detail": .text(error.message)]
            )
        }
        record(outcome)
        SystemdNotifier.ready(reloadState.status == nil ? supervisionStatus : outcome.summary)
        return outcome
    }

    /// What all the files say.
    private struct Reading: Sendable {
        let configuration: Configuration
        let registry: ProfileRegistry
        let devices: [SupervisedDevice]

        /// Of the devices that rules have made, `enrolled`, those stay that a rule would still make.
        init(
            _ file: ConfigurationFile,
            enrolled: [EnrolledDevice],
            _ profiles: (Configuration) throws(GatewayError) -> ProfileRegistry
        ) throws(GatewayError) {
            let configuration = try Self.configuration(file).recalling(enrolled)
            self.configuration = configuration
            let registry = try profiles(configuration)
            self.registry = registry
            let unusable = configuration.secretFindings.filter { $0.severity == .error }
            guard unusable.isEmpty else {
                throw GatewayError(.configuration, ConfigErrors(unusable).description)
            }
            devices = configuration.devices.map { SupervisedDevice($0, registry) }
        }

        private static func configuration(_ file: ConfigurationFile) throws(GatewayError) -> Configuration {
            do throws(ConfigErrors) {
                return try file.parsed()
            } catch {
                throw GatewayError(.configuration, error.description)
            }
        }
    }

    /// The profiles of `next`; one that is in use must not be lost for a mistake in its file.
    private func profiles(_ next: Configuration) throws(GatewayError) -> ProfileRegistry {
        let registry = try Self.profiles(next, log)
        let inUse = self.registry.profiles.map(\.origin)
        if let refusal = registry.refusals.first(where: { inUse.contains(where: $0.concerns) }) {
            throw GatewayError(.configuration, refusal.description)
        }
        return registry
    }

    /// - Returns: The sections whose changes wait for a restart.
    private func adopt(_ reading: Reading) async -> [String] {
        let (next, registry) = (reading.configuration, reading.registry)
        let before = configuration
        let waiting = Set(before.sectionsThatDiffer(from: next) + sectionsWithNewFiles(registry)).sorted()
        let now = before.taking(next)
        log.setThreshold(LogLevel(now.log.level))
        if let token = now.http?.token { self.token.withLock { $0 = token } }
        await take(now, registry, reading.devices)
        seek()
        if !waiting.isEmpty {
            log(
                .warning,
                "some changes take effect only at a restart",
                [.init("sections", waiting.joined(separator: " "))]
            )
        }
        let counts = [LogField("devices", now.devices.count), LogField("profiles", registry.profiles.count)]
        log(.notice, "the configuration is reloaded", counts)
        gateway.recorder.record(kind: "daemon", ["state": .text("reloaded")])
        return waiting
    }

    /// What delivery must know of devices and profiles.
    func tellDelivery(_ configuration: Configuration, _ registry: ProfileRegistry) {
        guard let delivery, let mqtt = configuration.mqtt else { return }
        delivery.adopt(
            PublishingRules(mqtt, configuration.devices),
            ControlPermissions(mqtt, configuration.devices)
        )
        delivery.setInfo(bridgeInfo(configuration, registry))
        // What is told of no device here is cleared.
        guard !enrolled.withLock(\.isRecallDue) else { return }
        let addresses = configuration.devices.map { ($0.name.value, $0.address.value.description) }
        delivery.enrol(Dictionary(addresses) { first, _ in first })
    }
}

extension Configuration {
    /// This configuration with all that can change in a running daemon as `next` has it.
    func taking(_ next: Configuration) -> Configuration {
        var result = self
        (result.devices, result.enrol, result.profiles) = (next.devices, next.enrol, next.profiles)
        result.log.level = next.log.level
        result.mqtt?.takeRules(of: next.mqtt)
        return result
    }

    /// What `next` says otherwise, and a running daemon cannot do.
    func sectionsThatDiffer(from next: Configuration) -> [String] {
        let now = taking(next)
        let sections = [
            ("gateway", now.gateway == next.gateway), ("bluetooth", now.bluetooth == next.bluetooth),
            ("history", now.history == next.history), ("mqtt", now.mqtt == next.mqtt),
            ("http", now.http == next.http), ("log", now.log == next.log),
        ]
        return sections.filter { !$0.1 }.map(\.0)
    }
}

extension MQTTSettings {
    fileprivate mutating func takeRules(of next: MQTTSettings?) {
        guard let next else { return }
        (publish, retains, setsControls) = (next.publish, next.retains, next.setsControls)
    }
}
