import GattherdProcess
import Glibc

/// The `sqlite3` program on a file: an independent reader.
public struct SQLiteShell: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    private let path: String

    public init(_ path: String) {
        self.path = path
    }

    /// The result rows of `sql` with their columns as text.
    ///
    /// NULL is `NULL`.
    public func rows(_ sql: String) async throws -> [[String]] {
        try await text(sql)
            .split(separator: "\n")
            .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
    }

    /// The shell's output for `sql`.
    ///
    /// Columns are separated by tabs, NULL is `NULL`.
    public func text(_ sql: String) async throws -> String {
        try await run(["-list", "-separator", "\t", "-nullvalue", "NULL", path, sql])
    }

    /// The only column of the only result row of `sql`.
    public func value(_ sql: String) async throws -> String {
        let rows = try await rows(sql)
        guard rows.count == 1, let value = rows[0].first else {
            throw Failure(description: "not one row: \(rows)")
        }
        return value
    }

    private func run(_ arguments: [String]) async throws -> String {
        let folder = try TemporaryFolder()
        let output = unsafe open(folder.file("output"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(output) }
        let shell = try ChildProcess(
            "sqlite3",
            ["-batch", "-bail", "-cmd", ".timeout 10000"] + arguments,
            output: .descriptor(output),
            errors: .descriptor(output)
        )
        let status = await shell.wait()
        let text = content(of: output)
        guard status == .exited(0) else { throw Failure(description: "sqlite3: \(status): \(text)") }
        return text
    }

    private func content(of descriptor: Int32) -> String {
        var octets: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = unsafe pread(descriptor, &part, part.count, octets.count), count > 0 {
            octets += part[..<count]
        }
        return String(decoding: octets, as: UTF8.self)
    }
}
