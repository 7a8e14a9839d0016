import Foundation
import GattherdConfig
import GattherdDBus
import GattherdModel
import TestKit
import Testing

@testable import gattherd

@Suite struct DoctorTests {
    private static let host = HostFacts()

    private static var container: HostFacts {
        var facts = HostFacts()
        facts.isContainer = true
        return facts
    }

    private static func denied(_ message: String) -> DBusError {
        DBusError(name: "org.freedesktop.DBus.Error.AccessDenied", message: message)
    }

    // MARK: - D-Bus

    private static let bus = DBusAddress.address("unix:path=/run/dbus/system_bus_socket")

    private static let appArmor = """
        An AppArmor policy prevents this sender from sending this message to this recipient; type="method_call", \
        sender=":1.42" (uid=0 pid=7 comm="gattherd" label="docker-default (enforce)")
        """

    @Test func `the remedy for AppArmor depends on the container`() {
        let inside = BusProblem(Self.denied(Self.appArmor), Self.container, at: Self.bus).noService
        #expect(inside.check == "policy")
        #expect(inside.severity == .error)
        #expect(inside.remedy?.contains("--security-opt apparmor=unconfined") == true)
        let outside = BusProblem(Self.denied(Self.appArmor), Self.host, at: Self.bus).noService
        #expect(outside.remedy?.contains("label=") == true)
    }

    @Test(arguments: [
        ("An SELinux policy prevents this sender from sending", "label=disable"),
        ("the bus at unix:path=/run/dbus/s hung up during the handshake: may", "--userns=host"),
        ("Failed to connect to socket /run/dbus/s: No such file or directory", "-v /run/dbus:/run/dbus"),
        ("Failed to connect to socket /run/dbus/s: Permission denied", "GATTHERD_UID"),
    ])
    func `the remedy in a container depends on the message of D-Bus`(message: String, remedy: String) {
        let finding = BusProblem(Self.denied(message), Self.container, at: Self.bus).unreachable
        #expect(finding.check == "bus")
        #expect(finding.text == message)
        #expect(finding.remedy?.contains(remedy) == true)
    }

    @Test(arguments: [
        (true, "unix:path=/run/dbus/s", "mount the host's bus into the container: -v /run/dbus:/run/dbus"),
        (true, "unix:path=/srv/b/s,guid=1", "correct bluetooth.bus, or mount that bus into the container: -v /srv/b:"),
        (true, "tcp:host=a,port=1", "correct bluetooth.bus in the configuration"),
        (false, "unix:path=/srv/b/s", "correct bluetooth.bus in the configuration"),
        (false, "unix:path=/run/dbus/s", "apt install dbus; systemctl start dbus.socket; or correct bluetooth.bus"),
    ])
    func `the remedy for a missing bus depends on its address`(
        isContainer: Bool,
        address: String,
        remedy: String
    ) {
        let error = DBusError(name: "org.freedesktop.DBus.Error.FileNotFound", message: "No such file or directory")
        let facts = isContainer ? Self.container : Self.host
        #expect(BusProblem(error, facts, at: .address(address)).unreachable.remedy?.hasPrefix(remedy) == true)
    }

    @Test func `a refusal by the bus policy names the group`() {
        let message = "Rejected send message, 2 matched rules; type=\"method_call\""
        let finding = BusProblem(Self.denied(message), Self.host, at: Self.bus).noService
        #expect(finding.check == "policy")
        #expect(finding.remedy?.contains("usermod -a -G bluetooth") == true)
    }

    @Test func `a missing bluetoothd is reported with the command that starts it`() {
        let error = DBusError(name: "org.freedesktop.DBus.Error.ServiceUnknown", message: "no such name")
        let finding = BusProblem(error, Self.host, at: Self.bus).noService
        #expect(finding.check == "bluetoothd")
        #expect(finding.remedy == "apt install bluez; systemctl enable --now bluetooth")
    }

    // MARK: - Adapters and radios

    @Test func `a host without an adapter is reported also while bluetoothd does not run`() {
        let error = DBusError(name: "org.freedesktop.DBus.Error.NoReply", message: "no reply within 5 s")
        let problem = BusProblem(error, Self.host, at: Self.bus).noService
        let findings = AdapterCheck.withoutService(problem, kernel: [])
        #expect(findings.map(\.check) == ["adapter", "bluetoothd"])
        #expect(findings.first?.remedy?.hasPrefix("plug one in") == true)
        #expect(AdapterCheck.withoutService(problem, kernel: ["hci0"]) == [problem])
        let refused = BusProblem(Self.denied("Rejected send message"), Self.host, at: Self.bus).noService
        #expect(AdapterCheck.withoutService(refused, kernel: []) == [refused])
    }

    private static func objects(_ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        let interfaces = DBusValue.dictionary(
            key: "s",
            value: "a{sv}",
            [DBusEntry(.string("org.bluez.Adapter1"), .properties(properties))]
        )
        let entry = DBusEntry(.objectPath("/org/bluez/hci1"), interfaces)
        return .dictionary(key: "o", value: "a{sa{sv}}", [entry])
    }

    @Test(arguments: [
        (true, ["central", "peripheral"], DoctorFinding.Severity.good, "hci1 (00:00:00:00:00:01) is on"),
        (false, ["central"], .warning, "hci1 (00:00:00:00:00:01) is off"),
        (true, ["peripheral"], .error, "hci1 (00:00:00:00:00:01) cannot connect to LE peripherals"),
    ])
    func `an adapter must be powered and support the central role`(
        isPowered: Bool,
        roles: [String],
        severity: DoctorFinding.Severity,
        text: String
    ) throws {
        let objects = Self.objects([
            "Address": .string("00:00:00:00:00:01"), "Powered": .boolean(isPowered), "Roles": .strings(roles),
        ])
        let findings = AdapterCheck(BluezAdapter.all(in: objects), Self.host, kernel: []).findings
        #expect(findings.map(\.severity) == [severity])
        #expect(findings.first?.text.hasPrefix(text) == true)
    }

    @Test func `two adapters with one address are reported`() {
        let twins = ["hci0", "hci1"].map { BluezAdapter(name: $0, address: "00:00:00:00:00:01", isPowered: true) }
        let findings = AdapterCheck(twins, Self.host, kernel: []).findings
        #expect(findings.map(\.severity) == [.warning, .warning])
        #expect(findings.first?.text == "hci0 (00:00:00:00:00:01) has the same address as hci1")
    }

    @Test func `an adapter that only the kernel has needs a restart of bluetoothd`() {
        let finding = AdapterCheck([], Self.host, kernel: ["hci0"]).findings.first
        #expect(finding?.remedy?.hasPrefix("systemctl restart bluetooth") == true)
        #expect(AdapterCheck([], Self.host, kernel: []).findings.first?.text == "there is no Bluetooth adapter")
    }

    @Test(arguments: [
        ("0", "0", DoctorFinding.Severity.good, String?.none), ("1", "0", .error, "rfkill unblock bluetooth"),
        ("0", "1", .error, "use the switch or key of the machine, or its firmware's setup"),
    ])
    func `a blocked radio is found`(
        soft: String,
        hard: String,
        severity: DoctorFinding.Severity,
        remedy: String?
    ) throws {
        let folder = try TemporaryFolder()
        for (name, type) in [("rfkill0", "bluetooth"), ("rfkill1", "wlan")] {
            let radio = URL(filePath: folder.file(name))
            try FileManager.default.createDirectory(at: radio, withIntermediateDirectories: false)
            let isOurs = type == "bluetooth"
            let files = ["type": type, "name": name, "soft": isOurs ? soft : "1", "hard": isOurs ? hard : "1"]
            for (name, text) in files {
                try (text + "\n").write(to: radio.appending(path: name), atomically: false, encoding: .utf8)
            }
        }
        let findings = KernelRadio.blocks(in: folder.path)
        #expect(findings.map(\.severity) == [severity])
        #expect(findings.map(\.remedy) == [remedy])
    }

    @Test(arguments: [
        ("5.66", DoctorFinding.Severity.good), ("5.82", .good), ("5.100", .good), ("6.0", .good), ("5.55", .warning),
        ("5.7", .warning), ("4.101", .warning),
    ])
    func `an old BlueZ is a warning`(version: String, severity: DoctorFinding.Severity) {
        #expect(BluezVersion.finding(version)?.severity == severity)
    }

    @Test func `an unknown version has no finding`() {
        #expect(BluezVersion.finding("unknown") == nil)
        #expect(BluezVersion.finding(nil) == nil)
    }

    // MARK: - Services and disks

    @Test(arguments: [
        ("inactive", "enabled", "no", DoctorFinding.Severity.error), ("active", "disabled", "no", .warning),
        ("active", "enabled", "no", .note), ("active", "enabled", "on-failure", .good),
    ])
    func `bluetoothd should run, be enabled and restart on failure`(
        active: String,
        file: String,
        restart: String,
        severity: DoctorFinding.Severity
    ) {
        let unit = UnitCheck.Unit(load: "loaded", active: active, file: file, restart: restart)
        #expect(UnitCheck.bluetooth(unit, kernel: ["hci0"]).map(\.severity) == [severity])
        #expect(UnitCheck.bluetooth(UnitCheck.Unit(load: "not-found")).isEmpty)
    }

    @Test func `a bluetoothd that waits for an adapter needs no command`() {
        let waiting = UnitCheck.Unit(load: "loaded", active: "inactive", file: "enabled")
        #expect(UnitCheck.bluetooth(waiting, kernel: []).map(\.severity) == [.note])
        let disabled = UnitCheck.Unit(load: "loaded", active: "inactive", file: "disabled")
        #expect(UnitCheck.bluetooth(disabled, kernel: []).map(\.severity) == [.error])
    }

    @Test(arguments: [("failed", [DoctorFinding.Severity.warning]), ("inactive", []), ("active", [])])
    func `a backup that has failed is reported`(active: String, severities: [DoctorFinding.Severity]) {
        let unit = UnitCheck.Unit(load: "loaded", active: active, result: "exit-code")
        #expect(UnitCheck.backup(unit).map(\.severity) == severities)
    }

    @Test(arguments: [
        (UInt(0xEF53), DoctorFinding.Severity.good), (0x6969, .error), (0x0102_1994, .warning), (0x794C_7630, .warning),
        (0x4D44, .warning), (0x6573_5546, .note),
    ])
    func `unsuitable file systems are reported`(type: UInt, severity: DoctorFinding.Severity) {
        let finding = DiskCheck.kind(DiskCheck.FileSystem(type: type, free: 0), "/data")
        #expect(finding.severity == severity)
        #expect((finding.remedy == nil) == (severity == .good))
    }

    @Test(arguments: [
        (UInt64(10 << 20), UInt64(0), DoctorFinding.Severity.error), (1 << 30, 0, .warning), (1 << 30, 3 << 30, .good),
        (4 << 30, 0, .good),
    ])
    func `the disk needs room for the largest size of history`(
        free: UInt64,
        used: UInt64,
        severity: DoctorFinding.Severity
    ) {
        let system = DiskCheck.FileSystem(type: 0xEF53, free: free)
        #expect(DiskCheck.room(system, "/data", used, 2 << 30).severity == severity)
    }

    @Test func `a missing state folder is not an error before the first start`() throws {
        let unit = ServiceUnit(["User=gattherd\nStateDirectory=gattherd-that-was-never-started"])
        var settings = HistorySettings(path: Located("/var/lib/gattherd-that-was-never-started/gattherd.db"))
        let findings = DiskCheck(settings, unit).findings
        #expect(findings.first?.severity == .good)
        #expect(findings.first?.text.contains("is made when the service starts for the first time") == true)
        #expect(Set(findings.map(\.check)) == ["history", "filesystem", "disk"])
        #expect(!findings.contains { $0.severity == .error && $0.check == "history" })
        settings.path = Located("/var/lib/gattherd-of-nobody/gattherd.db")
        #expect(DiskCheck(settings, unit).findings.map(\.severity) == [.error])
    }

    @Test func `a configuration without devices gets advice`() async throws {
        let folder = try TemporaryFolder()
        for text in ["", "# nothing\n", "gateway: lab-1\n"] {
            let file = try folder.write(text, to: "gattherd.yaml")
            let (code, output) = try await Programs.run(Programs.path("gattherd"), ["check", file])
            #expect(code == 0)
            let advice = "no devices: nothing is connected; run 'gattherd scan', then 'gattherd add ADDRESS'"
            #expect(output.contains(advice))
        }
        let text = "bluetooth: {bus: \"unix:path=\(folder.file("bus"))\"}"
        let file = try folder.write(text, to: "gattherd.yaml")
        let (_, output) = try await Programs.run(Programs.path("gattherd"), ["doctor", "--config", file])
        #expect(output.components(separatedBy: "no devices").count == 2)
    }

    @Test func `a configuration that names an unusable file is not reported as good`() async throws {
        let folder = try TemporaryFolder()
        let text = """
            bluetooth: {bus: "unix:path=\(folder.file("bus"))"}
            http: {listen: "127.0.0.1:8780", token_file: missing}
            """
        let file = try folder.write(text, to: "gattherd.yaml")
        let (code, output) = try await Programs.run(Programs.path("gattherd"), ["doctor", "--config", file])
        #expect(code == 78)
        #expect(output.contains("error   config"))
        #expect(!output.contains("good    config"))
    }

    // MARK: - The command

    @Test func `all checks are reported, with exit code 69 after an error`() async throws {
        let folder = try TemporaryFolder()
        let port = try Broker.freePort()
        let text = """
            bluetooth: {bus: "unix:path=\(folder.file("bus"))"}
            history: {path: \(folder.file("history.db"))}
            mqtt: {url: "mqtt://127.0.0.1:\(port)"}
            """
        let file = folder.file("gattherd.yaml")
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        let (code, output) = try await Programs.run(
            Programs.path("gattherd"),
            ["doctor", "--json", "--config", file]
        )
        #expect(code == 69)
        struct ReportedFinding: Decodable {
            let check: String
            let severity: String
            let remedy: String?
        }
        let reported = try JSONDecoder().decode([ReportedFinding].self, from: Data(output.utf8))
        let errors = reported.filter { $0.severity == "error" }
        #expect(errors.map(\.check) == ["bus", "broker"])
        #expect(errors.allSatisfy { $0.remedy != nil })
        #expect(
            Set(reported.map(\.check)).isSuperset(of: ["config", "clock", "history", "disk", "filesystem", "daemon"])
        )
    }

    @Test func `a wrong configuration is exit code 78, and the other checks still run`() async throws {
        let (code, output) = try await Programs.run(
            Programs.path("gattherd"),
            ["doctor", "--config", "/nowhere/gattherd.yaml"]
        )
        #expect(code == 78)
        #expect(output.contains("gattherd check /nowhere/gattherd.yaml"))
        #expect(output.contains("clock"))
    }
}
