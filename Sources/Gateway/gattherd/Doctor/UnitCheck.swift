import GattherdDBus
import GattherdGateway

/// Findings about the units of bluetoothd and gattherd; none without systemd.
struct UnitCheck {
    /// A unit's state, as systemd names it.
    struct Unit: Hashable {
        var load = ""
        var active = ""
        var file = ""
        var restart = ""
        var result = ""
    }

    private static let service = "org.freedesktop.systemd1"
    /// The limit of an answer of systemd, which needs milliseconds.
    private static let answerLimit = Duration.seconds(5)
    private let connection: DBusConnection

    init(_ connection: DBusConnection) {
        self.connection = connection
    }

    func findings() async -> [DoctorFinding] {
        var findings: [DoctorFinding] = []
        if let unit = await unit("bluetooth.service") { findings += Self.bluetooth(unit) }
        if let unit = await unit("gattherd.service") { findings += Self.gattherd(unit) }
        if let unit = await unit("gattherd-backup.service") { findings += Self.backup(unit) }
        return findings
    }

    /// - Parameters:
    ///   - unit: The unit of bluetoothd, which systemd starts only if the kernel has an adapter.
    ///   - kernel: The kernel's adapters.
    /// - Returns: The findings.
    static func bluetooth(_ unit: Unit, kernel: [String] = KernelRadio.kernelAdapters()) -> [DoctorFinding] {
        guard unit.load == "loaded" else { return [] }
        let name = "bluetooth.service"
        if unit.active == "inactive", unit.file == "enabled", kernel.isEmpty {
            return [DoctorFinding("service", .note, "\(name) waits for an adapter")]
        }
        if unit.active != "active" {
            let advice = "systemctl enable --now bluetooth; journalctl -u bluetooth says more"
            return [DoctorFinding("service", .error, "\(name) is \(unit.active)", remedy: advice)]
        }
        if unit.file == "disabled" {
            let text = "\(name) runs, but is not started with the host"
            return [DoctorFinding("service", .warning, text, remedy: "systemctl enable bluetooth")]
        }
        guard unit.restart == "no" else {
            return [.good("service", "\(name) runs, and is started again when it fails")]
        }
        let advice =
            "put config/bluetooth-restart.conf into /etc/systemd/system/bluetooth.service.d; systemctl daemon-reload"
        return [
            DoctorFinding("service", .note, "\(name) runs, but is not restarted after a failure", remedy: advice)
        ]
    }

    static func gattherd(_ unit: Unit) -> [DoctorFinding] {
        guard unit.load == "loaded" else { return [] }
        if unit.active == "failed" {
            let text = "gattherd.service has failed (\(unit.result))"
            return [DoctorFinding("service", .error, text, remedy: "journalctl -u gattherd -n 20 says why")]
        }
        guard unit.active == "active" || unit.active == "reloading" else {
            let advice = DaemonClient.startCommand
            return [DoctorFinding("service", .warning, "gattherd.service is \(unit.active)", remedy: advice)]
        }
        return [.good("service", "gattherd.service runs")]
    }

    /// Returns a finding if the last backup has failed; full disks end all later ones.
    static func backup(_ unit: Unit) -> [DoctorFinding] {
        guard unit.load == "loaded", unit.active == "failed" else { return [] }
        let text = "the last backup has failed (\(unit.result))"
        return [DoctorFinding("service", .warning, text, remedy: "journalctl -u gattherd-backup -n 20 says why")]
    }

    private func unit(_ name: String) async -> Unit? {
        do throws(DBusError) {
            let path = try await connection.call(
                Self.service,
                "/org/freedesktop/systemd1",
                Self.service + ".Manager",
                "LoadUnit",
                [.string(name)],
                timeout: Self.answerLimit
            )
            guard let path = path.first?.string else { return nil }
            var unit = Unit()
            for interface in [".Unit", ".Service"] {
                let reply = try await connection.call(
                    Self.service,
                    path,
                    "org.freedesktop.DBus.Properties",
                    "GetAll",
                    [.string(Self.service + interface)],
                    timeout: Self.answerLimit
                )
                for entry in reply.first?.entries ?? [] { unit.apply(entry) }
            }
            return unit
        } catch {
            return nil
        }
    }
}

extension UnitCheck.Unit {
    fileprivate mutating func apply(_ entry: DBusEntry) {
        let text = entry.value.string ?? ""
        switch entry.key.string {
        case "LoadState": load = text
        case "ActiveState": active = text
        case "UnitFileState": file = text
        case "Restart": restart = text
        case "Result": result = text
        default: break
        }
    }
}
