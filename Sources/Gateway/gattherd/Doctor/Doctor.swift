import CLinux
import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdGateway
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdProfiles
import GattherdSync

/// Runs the checks of everything that could keep the gateway from working.
struct Doctor {
    /// The limit of a connection to the broker; a person waits for it.
    private static let brokerLimit = Duration.seconds(8)

    private let file: ConfigurationFile
    private let facts: HostFacts

    init(_ file: ConfigurationFile, _ facts: HostFacts = .current) {
        self.file = file
        self.facts = facts
    }

    /// Runs all checks in order and passes on the findings of each.
    func examine(_ report: ([DoctorFinding]) -> Void) async {
        report(hostFindings)
        let configuration = readConfiguration(report)
        report([BluezVersion.finding(await BluezVersion.installed())].compactMap(\.self))
        report(KernelRadio.blocks())
        report(await BluetoothCheck(configuration?.bluetooth.bus ?? .system, facts).findings())
        report([clock])
        guard let configuration else { return }
        report(DiskCheck(configuration.history, .installed()).findings)
        report(profiles(configuration))
        report(await broker(configuration))
        report(daemon(configuration))
    }

    private var hostFindings: [DoctorFinding] {
        var findings: [DoctorFinding] = []
        if facts.isContainer {
            findings.append(
                DoctorFinding("container", .note, "this is a container: bluetoothd and its radio are the host's")
            )
        }
        if facts.isRoot {
            let text = "this runs as root, which has more rights than the daemon's user"
            findings.append(DoctorFinding("user", .note, text, remedy: "sudo -u gattherd gattherd doctor"))
        }
        return findings
    }

    private func readConfiguration(_ report: ([DoctorFinding]) -> Void) -> Configuration? {
        report(file.unreadFiles.map(finding))
        do throws(ConfigErrors) {
            let configuration = try file.parsed()
            let findings = configuration.secretFindings + (ServiceAccess(file)?.findings(configuration) ?? [])
            let isGood = !findings.contains { $0.severity == .error }
            if isGood { report([.good("config", "'\(file.path)' can be read")]) }
            report(findings.map(finding))
            if let advice = configuration.emptinessAdvice(file) {
                report([DoctorFinding("config", .note, "it names no devices", remedy: advice)])
            }
            return configuration
        } catch {
            report(error.errors.map(finding))
            return nil
        }
    }

    private func finding(_ error: ConfigError) -> DoctorFinding {
        let severity = error.severity == .error ? DoctorFinding.Severity.error : .warning
        let line = error.description.split(separator: "\n").first.map { String($0) } ?? ""
        return DoctorFinding("config", severity, line, remedy: "gattherd check \(file.path) shows the place")
    }

    private var clock: DoctorFinding {
        guard !clinux_is_clock_synchronised() else { return .good("clock", "the clock is synchronised") }
        let advice = facts.isContainer ? "on the host: " : ""
        return DoctorFinding(
            "clock",
            .warning,
            "the clock is not synchronised: readings may get a wrong time until it is",
            remedy: advice + "apt install systemd-timesyncd; timedatectl set-ntp true"
        )
    }

    private func profiles(_ configuration: Configuration) -> [DoctorFinding] {
        do throws(ConfigErrors) {
            let registry = try configuration.loadProfiles(for: ServiceAccess(file)?.profileAccount ?? .current)
            let refusals = registry.refusals.map { refusal in
                DoctorFinding("profiles", .error, "\(refusal.path): \(refusal.reason)", remedy: refusal.remedy)
            }
            let mismatches = configuration.mismatches(with: registry).map(finding)
            let count = registry.profiles.count
            guard count > 0 else {
                let advice = "install them (make install), or set profiles.paths"
                return refusals + [DoctorFinding("profiles", .error, "there are no profiles", remedy: advice)]
            }
            return [.good("profiles", "\(count) are loaded")] + refusals + mismatches
        } catch {
            return error.errors.map(finding)
        }
    }

    private func broker(_ configuration: Configuration) async -> [DoctorFinding] {
        guard let mqtt = configuration.mqtt else { return [] }
        let settings: DeliverySettings
        do throws(GatewayError) {
            settings = try deliverySettings(mqtt, configuration)
        } catch {
            // Reported with the configuration.
            return []
        }
        do throws(BrokerFault) {
            try await BrokerProbe.connect(with: settings, within: Self.brokerLimit)
            let way = mqtt.broker.usesTLS ? ", and its certificate is good" : ""
            return [.good("broker", "the broker at \(mqtt.broker) accepts the gateway\(way)")]
        } catch {
            return [DoctorFinding("broker", .error, error.detail, remedy: error.kind.remedy(mqtt))]
        }
    }

    /// Reads the password with the rights of the service.
    ///
    /// A file of `gattherd.d` may name a file that only root can read, which must not be sent to a broker.
    func deliverySettings(
        _ mqtt: MQTTSettings,
        _ configuration: Configuration
    ) throws(GatewayError) -> DeliverySettings {
        let state = configuration.history.path.value.parentFolder
        return try FileAccount.daemon(of: file, stateFolder: state).run { () throws(GatewayError) in
            try DeliverySettings(mqtt, gateway: configuration.gateway, devices: [], log: .silent)
        }
    }

    private func daemon(_ configuration: Configuration) -> [DoctorFinding] {
        do throws(ControlSocketError) {
            guard case .status(let status) = try ControlClient.ask(.status, at: configuration.controlSocketPath) else {
                return []
            }
            let advice = "compare 'date -u' with the right time, and correct the clock or the time server"
            let clock = status.history.clock.map { DoctorFinding("clock", .warning, $0, remedy: advice) }
            let ready = status.devices.filter(\.isOnline).count
            let counts = "\(ready) of \(status.devices.count) devices are ready"
            let daemon = DoctorFinding.good("daemon", "gattherd \(status.version) runs: \(counts)")
            let events = OutputCheck.events(in: configuration.history.path.value)
            return [daemon] + [clock].compactMap(\.self) + LinkCheck(status).findings
                + OutputCheck(status.outputs, events, now: SystemClock.now).findings
                + status.devices.compactMap(\.decodingFinding)
        } catch {
            guard error.isNobodyThere else { return [DoctorFinding("daemon", .warning, error.description)] }
            let advice = DaemonClient.startCommand
            return [DoctorFinding("daemon", .note, "no daemon runs with this configuration", remedy: advice)]
        }
    }
}

extension DaemonStatus.Device {
    fileprivate var decodingFinding: DoctorFinding? {
        guard let undecodable else { return nil }
        let text = "no payload of '\(device)' decodes: \(undecodable.joined(separator: "; "))"
        return DoctorFinding("decoding", .warning, text, remedy: Self.decodingRemedy(for: device))
    }
}

extension BrokerFault.Kind {
    /// Returns the first remedy to try; the fault itself has the details.
    fileprivate func remedy(_ settings: MQTTSettings) -> String? {
        switch self {
        case .unreachable, .lost:
            "is it running, and is mqtt.url right? Try: nc -z \(settings.broker.host) \(settings.broker.port)"
        case .busy: "read the broker's log"
        case .credentials: "correct mqtt.username and mqtt.password_file, or the broker's list of users"
        case .session: nil
        case .security:
            "check it with: openssl s_client -connect \(settings.broker.host):\(settings.broker.port)"
                + (settings.tls.ca.map { " -CAfile \($0.value)" } ?? "")
        }
    }
}
