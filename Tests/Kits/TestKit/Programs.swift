public import Foundation
// Tests start private buses without a dependency of their own.
@_exported public import GattherdProcess

/// The programs of this build.
public enum Programs {
    /// The build folder, which contains the test executable.
    public static let folder =
        URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()

    /// The path of a program in the build folder.
    public static func path(_ name: String) -> String { folder.appending(path: name).path }

    /// Runs a program and returns its exit status and standard output.
    ///
    /// Standard error is written to the file `errors`, if given.
    public static func run(
        _ program: String,
        _ arguments: [String],
        errors: String? = nil
    ) async throws -> (Int32, String) {
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
        if case .exited(let code) = status { return (code, output.text) }
        return (-1, output.text)
    }
}

/// The package's own files.
public enum Checkout {
    /// The package's root folder.
    public static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}

/// A file for the output of a child process.
public final class OutputFile: Sendable {
    public let path: String
    public let descriptor: Int32

    public init(_ path: String) throws {
        self.path = path
        descriptor = unsafe open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    deinit {
        close(descriptor)
    }

    public var text: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    /// The complete lines.
    public var lines: [Substring] {
        let text = text
        let complete = text.last == "\n" ? text[...] : text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
        return complete.split(separator: "\n")
    }
}

/// Polls every 5 ms until `condition` holds.
///
/// The test's time limit bounds the wait.
public func eventually(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
}
