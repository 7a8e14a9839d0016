import GattherdHTTP
import GattherdModel
import GattherdProcess
import GattherdSync
import Glibc

/// Runs commands that print JSON with the rights and the restrictions of the daemon, one at a time.
///
/// Each runs as a separate process, so a command that hangs or uses much memory does not harm the daemon.
final class CommandRun: Sendable {
    private static let timeLimit = Duration.seconds(45)
    /// The maximum number of bytes of its answer.
    private static let sizeLimit = 524_288

    private let file: ConfigurationFile
    private let isBusy = Locked(false)

    init(_ file: ConfigurationFile) {
        self.file = file
    }

    /// Runs a command of `gattherd` and returns its output.
    ///
    /// - Parameters:
    ///   - command: The name of the command.
    ///   - words: Its arguments that are no options.
    /// - Returns: JSON.
    /// - Throws: ``BackendError`` if the command fails or does not end.
    func output(_ command: String, _ words: [String] = []) async throws(BackendError) -> [UInt8] {
        let isFree = isBusy.withLock { isBusy in
            defer { isBusy = true }
            return !isBusy
        }
        guard isFree else { throw BackendError(.unavailable, "another command is running; try again") }
        defer { isBusy.withLock { $0 = false } }
        let (child, reader) = try start(arguments(command, words))
        let limit = Task { [child] in
            guard (try? await Task.sleep(for: Self.timeLimit, clock: .loop)) != nil else { return }
            child.signal(SIGKILL)
        }
        let output = await NamedThread.result(name: "command") { Self.output(of: reader) }
        limit.cancel()
        child.signal(SIGKILL)
        _ = await child.wait()
        guard let output, (try? JSONReader.value(of: output)) != nil else {
            let line = (["gattherd", command] + Self.ended(words)).joined(separator: " ")
            throw BackendError(.unavailable, "no answer; run on the host: \(line)")
        }
        return output
    }

    /// Returns the words after the name of the program.
    func arguments(_ command: String, _ words: [String]) -> [String] {
        [command, "--json", "--config", file.path] + Self.ended(words)
    }

    /// Returns arguments behind the end of the options if one begins as an option does, such as the name of a device.
    private static func ended(_ words: [String]) -> [String] {
        words.contains { $0.hasPrefix("-") } ? ["--"] + words : words
    }

    private func start(_ arguments: [String]) throws(BackendError) -> (child: ChildProcess, reader: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw BackendError(.unavailable, "the command cannot be run: \(reason)")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        do throws(SpawnError) {
            let output = ChildProcess.Output.descriptor(ends[1])
            return (try ChildProcess("/proc/self/exe", arguments, output: output, errors: .null), ends[0])
        } catch {
            close(ends[0])
            throw BackendError(.unavailable, error.description)
        }
    }

    /// Reads until the end, or the limit, and closes the descriptor.
    private static func output(of reader: Int32) -> [UInt8] {
        defer { close(reader) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < sizeLimit {
            let count = unsafe read(reader, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += block.prefix(count)
        }
        return bytes
    }
}
