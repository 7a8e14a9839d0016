import CLinux
import GattherdGateway
import GattherdSync
import Glibc

/// The output of a long result: standard output, or a draft that is renamed to the file when it is complete.
final class OutputDestination {
    /// The path of the file; `nil` for standard output.
    private let path: String?
    /// The file until it is complete; `nil` for standard output and for special files.
    private let draft: FileDraft?
    private let descriptor: Int32
    /// The `errno` of the first failed write.
    private var problem: Int32?

    /// The option with which a command replaces a file that ``init(path:from:replaces:)`` would refuse.
    static let replacement = OptionSpec.flag("replace", "replace FILE if it exists")

    /// - Parameters:
    ///   - path: The file; `nil`, `-` or `/dev/stdout` for standard output.
    ///   - word: The option of the path, for messages.
    ///   - replaces: False to refuse a file that exists.
    /// - Throws: ``CommandFailure`` if the file cannot be made.
    init(path: String?, from word: String = "--output", replaces: Bool = true) throws(CommandFailure) {
        // A draft of /dev/stdout would replace that link.
        self.path = ["-", "/dev/stdout"].contains(path) ? nil : path
        guard let path = self.path else {
            draft = nil
            descriptor = STDOUT_FILENO
            return
        }
        if !replaces { try Self.refuseExisting(path, word) }
        do throws(FileError) {
            if Self.isSpecial(path) {
                draft = nil
                descriptor = try Self.open(path)
            } else {
                let draft = try Self.draft(of: path)
                self.draft = draft
                descriptor = draft.descriptor
            }
        } catch {
            throw CommandFailure(.cannotCreate, "gattherd: \(path): \(error.reason); choose another \(word)")
        }
    }

    deinit {
        if path != nil, draft == nil { close(descriptor) }
    }

    /// - Throws: ``CommandFailure`` if there is such a file.
    private static func refuseExisting(_ path: String, _ word: String) throws(CommandFailure) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, !isSpecial(path) else { return }
        throw CommandFailure(
            .cannotCreate,
            "gattherd: \(path) already exists; choose another \(word), or add --\(replacement.name)"
        )
    }

    /// Creates a draft, which follows no link of another user, with the permissions of a new file.
    private static func draft(of path: String) throws(FileError) -> FileDraft {
        let draft = try FileDraft(of: path)
        let mask = umask(0o022)
        umask(mask)
        // Not all file systems have permissions.
        try? draft.setMode(0o644 & ~mask)
        return draft
    }

    private static func open(_ path: String) throws(FileError) -> Int32 {
        let descriptor = unsafe Glibc.open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { throw FileError(errno, path) }
        return descriptor
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
        guard let path else { return }
        do throws(FileError) {
            if let problem { throw FileError(problem, path) }
            try draft?.replace()
        } catch {
            throw CommandFailure(.inputOutput, "gattherd: \(path): \(error.reason); it is not complete")
        }
    }

    /// True for a device or a pipe, which must not be replaced by a file.
    private static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }
}
