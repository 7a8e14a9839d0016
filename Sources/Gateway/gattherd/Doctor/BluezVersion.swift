import GattherdProcess
import Glibc

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
        var octets = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(ends[0], &octets, octets.count)
        let text = String(decoding: octets.prefix(max(0, count)), as: UTF8.self)
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
