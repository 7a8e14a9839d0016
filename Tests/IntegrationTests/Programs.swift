import Foundation
import GattherdProcess
import TestKit

/// Where the programs that were built with the tests are.
enum Programs {
    /// The folder of the test executable, which is the build's folder.
    static let folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()

    static func path(_ name: String) -> String { folder.appending(path: name).path }

    /// Runs a program to its end, and gives its exit status and standard output.
    static func run(_ program: String, _ arguments: [String], errors: String? = nil) async throws -> (Int32, String) {
        let folder = try TemporaryFolder()
        let output = try OutputFile(folder.file("out"))
        let diagnosis = try OutputFile(errors ?? folder.file("err"))
        let child = try ChildProcess(
            program,
            arguments,
            output: .descriptor(output.descriptor),
            errors: .descriptor(diagnosis.descriptor)
        )
        let status = await child.wait()
        let text = try String(contentsOfFile: folder.file("out"), encoding: .utf8)
        if case .exited(let code) = status { return (code, text) }
        return (-1, text)
    }
}

/// A file that a child writes to.
final class OutputFile: Sendable {
    let path: String
    let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        descriptor = unsafe open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    deinit {
        close(descriptor)
    }

    var lines: [Substring] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let complete = text.last == "\n" ? text[...] : text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
        return complete.split(separator: "\n")
    }
}

/// Looks again and again until `condition` holds; the test's time limit bounds it.
func eventually(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(50)) }
}
