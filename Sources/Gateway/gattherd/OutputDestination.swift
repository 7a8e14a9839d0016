import CLinux
import GattherdGateway
import GattherdSync
import Glibc

/// The output of a long result: standard output, or a file that gets its name when it is complete.
final class OutputDestination {
    /// The path of the file; `nil` for standard output.
    private let path: String?
    /// The file that is written to: a temporary one until it is complete, except for special files.
    private let draft: String?
    private let descriptor: Int32
    /// The `errno` of the first failed write.
    private var problem: Int32?
    private var isComplete = false

    /// - Parameters:
    ///   - path: The file, which is replaced if it exists; `nil` or `-` for standard output.
    ///   - word: The option of the path, for messages.
    /// - Throws: ``CommandFailure`` if the file cannot be made.
    init(path: String?, from word: String = "--output") throws(CommandFailure) {
        self.path = path == "-" ? nil : path
        guard let path = self.path else {
            draft = nil
            descriptor = STDOUT_FILENO
            return
        }
        draft = Self.isSpecial(path) ? path : path + ".part"
        descriptor = unsafe open(draft ?? path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0o644)
        guard descriptor >= 0 else {
            throw CommandFailure(.cannotCreate, "gattherd: \(path): \(SystemError.current); choose another \(word)")
        }
    }

    deinit {
        guard let draft else { return }
        close(descriptor)
        if !isComplete && draft != path { unsafe unlink(draft) }
    }

    /// True if the output is a terminal.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    func write(_ text: String) -> Bool { write(Array(text.utf8)) }

    /// Writes text; a terminal gets no control characters.
    ///
    /// - Parameter bytes: UTF-8 that ends between two characters.
    /// - Returns: False if writing failed; then nothing more needs to be written.
    func write(_ bytes: [UInt8]) -> Bool {
        let bytes = isTerminal ? Array(Terminal.harmlessLines(String(decoding: bytes, as: UTF8.self)).utf8) : bytes
        guard path != nil else {
            Terminal.write(bytes, to: descriptor)
            return true
        }
        guard problem == nil else { return false }
        if writeAll(bytes, to: descriptor) { return true }
        problem = errno
        return false
    }

    /// Syncs the file and renames it into place.
    func finish() throws(CommandFailure) {
        guard let path, let draft else { return }
        if problem == nil, draft != path {
            if fsync(descriptor) != 0 { problem = errno }
            if problem == nil, unsafe rename(draft, path) != 0 { problem = errno }
        }
        if let problem {
            throw CommandFailure(.inputOutput, "gattherd: \(path): \(SystemError(problem)); it is not complete")
        }
        isComplete = true
    }

    /// True for a device or a pipe, which must not be replaced by a file.
    private static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }
}
