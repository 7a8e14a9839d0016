import FoundationEssentials
import GattherdGateway
import GattherdProcess
import Glibc

/// Facts about the host or the container.
struct HostFacts: Hashable {
    var isContainer = false
    var isRoot = false
    var user = ""

    init() {}

    /// The current facts.
    static var current: Self {
        var facts = Self()
        let files = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]
        facts.isContainer =
            files.contains { FileManager.default.fileExists(atPath: $0) } || Terminal.environment("container") != nil
        facts.isRoot = geteuid() == 0
        facts.user = unsafe getpwuid(geteuid()).map { unsafe String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
        return facts
    }
}

/// The kernel's view of Bluetooth radios.
enum KernelRadio {
    /// The kernel's Bluetooth adapters, for example `hci0`.
    static func kernelAdapters(in folder: String = "/sys/class/bluetooth") -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasPrefix("hci") && !$0.contains(":") }.sorted()
    }

    /// The findings about rfkill switches that block Bluetooth radios, by software or by hardware.
    static func blocks(in folder: String = "/sys/class/rfkill") -> [DoctorFinding] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder))?.sorted() ?? []
        let radios = names.map { Switch(folder + "/" + $0) }.filter { $0.type == "bluetooth" }
        guard !radios.isEmpty else { return [] }
        let findings = radios.compactMap(\.finding)
        return findings.isEmpty ? [.good("rfkill", "no Bluetooth radio is blocked")] : findings
    }

    private struct Switch {
        private let folder: String

        init(_ folder: String) {
            self.folder = folder
        }

        var type: String { text("type") }

        var finding: DoctorFinding? {
            if text("hard") == "1" {
                let advice = "use the switch or key of the machine, or its firmware's setup"
                return DoctorFinding("rfkill", .error, "\(text("name")) is off by a hardware switch", remedy: advice)
            }
            guard text("soft") == "1" else { return nil }
            return DoctorFinding("rfkill", .error, "\(text("name")) is blocked", remedy: "rfkill unblock bluetooth")
        }

        private func text(_ name: String) -> String {
            let data = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            return String(decoding: data.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }
}

/// The version of BlueZ.
enum BluezVersion {
    /// The oldest version that gattherd is tested with.
    static let oldest = "5.66"
    static let programs = [
        "/usr/libexec/bluetooth/bluetoothd", "/usr/lib/bluetooth/bluetoothd", "/usr/sbin/bluetoothd",
    ]

    /// Returns the version of the program on this host, which may differ from the running one.
    static func installed() async -> String? {
        guard let program = programs.first(where: { unsafe access($0, X_OK) == 0 }) else { return nil }
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        let child = try? ChildProcess(program, ["--version"], output: .descriptor(ends[1]), errors: .null)
        close(ends[1])
        defer { close(ends[0]) }
        guard let child else { return nil }
        _ = await child.wait()
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(ends[0], &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        return text.split { $0.isWhitespace }.last.map { String($0) }
    }

    /// Returns the finding about a version.
    static func finding(_ version: String?) -> DoctorFinding? {
        guard let version, let parts = numbers(of: version), let wanted = numbers(of: oldest) else { return nil }
        guard parts < wanted else { return .good("bluez", "BlueZ \(version)") }
        let text = "BlueZ \(version) is older than \(oldest), the oldest that gattherd is tested with"
        return DoctorFinding("bluez", .warning, text, remedy: "upgrade to Debian 12 or later, or install a newer bluez")
    }

    /// Returns the two numbers of a version: 5.100 is newer than 5.66, and 5.7 is older.
    private static func numbers(of version: String) -> (major: Int, minor: Int)? {
        let parts = version.split(separator: ".").map { Int($0) }
        guard parts.count >= 2, let major = parts[0], let minor = parts[1] else { return nil }
        return (major, minor)
    }
}
