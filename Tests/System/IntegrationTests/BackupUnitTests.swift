import Foundation
import GattherdHistory
import TestKit
import Testing

/// The systemd unit of the daily backup, run as systemd runs it: with its environment and its read-only file system.
@Suite(.timeLimit(.minutes(2)))
struct BackupUnitTests {
    private static let configuration = Checkout.root.appending(path: "config")

    /// The values of a key in a unit.
    private static func words(_ key: String, of unit: String) throws -> [String] {
        let text = try String(contentsOf: configuration.appending(path: unit), encoding: .utf8)
        let line = text.split(separator: "\n").last { $0.hasPrefix(key + "=") } ?? ""
        return line.dropFirst(key.count + 1).split(separator: " ").map(String.init)
    }

    private let root: TemporaryFolder
    private let history: HistoryFolder

    init() async throws {
        (root, history) = (try TemporaryFolder(), try await HistoryFolder(seconds: 60))
        try FileManager.default.createDirectory(atPath: root.file("etc/gattherd"), withIntermediateDirectories: true)
        try root.write("gateway: attic\n", to: "etc/gattherd/gattherd.yaml")
        // Where systemd tells the daemon to keep its history.
        let state = try #require(try Self.words("StateDirectory", of: "gattherd.service").first)
        let folder = root.file("var/lib/\(state)")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: history.database, toPath: folder + "/gattherd.db")
    }

    /// Runs the unit's command in a root folder with only the state directories writable.
    private func run() async throws -> Int32 {
        let states = try Self.words("StateDirectory", of: "gattherd-backup.service").map { root.file("var/lib/" + $0) }
        for state in states {
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        }
        let command = try Self.words("ExecStart", of: "gattherd-backup.service").map { word in
            if word == "/usr/local/bin/gattherd" { return Programs.path("gattherd") }
            return word.hasPrefix("/") ? root.path + word : word
        }
        let start = ["/usr/bin/env", "STATE_DIRECTORY=" + states.joined(separator: ":")] + command
        guard getuid() == 0 else { return try await Programs.run(start[0], Array(start.dropFirst())).0 }
        let script = """
            set -e
            mount --bind "$0" "$0"
            for each in \(states.joined(separator: " ")); do mount --bind "$each" "$each"; done
            mount -o remount,ro,bind "$0"
            exec "$@"
            """
        return try await Programs.run("unshare", ["--mount", "sh", "-c", script, root.path] + start).0
    }

    @Test func `the daily backup has the history of the stopped daemon, and can be restored`() async throws {
        #expect(try await run() == 0)
        let target = try #require(try Self.words("ExecStart", of: "gattherd-backup.service").last)
        let folder = root.path + target
        let archive = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
        let new = try TemporaryFolder()
        let words = ["restore", "\(folder)/\(archive)", "--config", new.file("gattherd.yaml")]
        #expect(try await Programs.run(Programs.path("gattherd"), words).0 == 0)
        #expect(try HistoryReader(path: new.file("gattherd.db")).contents().samples == 62)
        #expect(try String(contentsOfFile: new.file("gattherd.yaml"), encoding: .utf8) == "gateway: attic\n")
    }

    @Test func `the backup is restricted like the daemon`() throws {
        let unit = Self.configuration.appending(path: "gattherd.service")
        let keys = try String(contentsOf: unit, encoding: .utf8).split(separator: "\n")
            .compactMap { line in line.split(separator: "=").first.map { String($0) } }
        let starts = [
            "Protect", "Private", "Restrict", "SystemCall", "Memory", "Lock", "NoNew", "Device", "Capability",
            "Ambient",
        ]
        let limits = keys.filter { key in starts.contains { key.hasPrefix($0) } && key != "MemoryMax" }
        #expect(limits.count > 15)
        for key in limits {
            let words = try Self.words(key, of: "gattherd.service")
            #expect(try Self.words(key, of: "gattherd-backup.service") == words, "\(key)")
        }
    }

    @Test func `backups are not in a folder that the package removes when it is purged`() throws {
        let target = try #require(try Self.words("ExecStart", of: "gattherd-backup.service").last)
        let postrm = Self.configuration.appending(path: "debian/gattherd.postrm")
        let script = try String(contentsOf: postrm, encoding: .utf8)
        #expect(script.contains("rm -rf /var/lib/gattherd ||"))
        #expect(!target.hasPrefix("/var/lib/gattherd/"))
    }
}
