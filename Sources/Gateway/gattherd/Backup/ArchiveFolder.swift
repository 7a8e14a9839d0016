import CLinux
import FoundationEssentials
import GattherdProcess
import Glibc

/// A temporary folder with the content of an archive, which only this user can read.
struct ArchiveFolder {
    let path: String
    private let command: String

    /// - Parameter command: The command, for messages.
    /// - Throws: ``CommandFailure`` if the folder cannot be made.
    init(_ command: String) throws(CommandFailure) {
        // History may be too large for a /tmp in memory.
        let parent = Terminal.environment("TMPDIR") ?? "/var/tmp"
        var template = Array((parent + "/gattherd-XXXXXX").utf8CString)
        guard let made = unsafe mkdtemp(&template) else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(.cannotCreate, "gattherd \(command): no folder can be created in \(parent): \(reason)")
        }
        path = unsafe String(cString: made)
        self.command = command
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    /// Copies a file into the folder.
    func add(_ source: String, as name: String) throws(CommandFailure) {
        do {
            let target = file(name)
            try FileManager.default.createDirectory(atPath: target.folderPath, withIntermediateDirectories: true)
            try Data(contentsOf: URL(filePath: source)).write(to: URL(filePath: target))
            var status = stat()
            if unsafe stat(source, &status) == 0 { unsafe chmod(target, status.st_mode & 0o777) }
        } catch {
            let reason = unsafe access(source, R_OK) == 0 ? "\(error)" : unsafe String(cString: strerror(errno))
            throw CommandFailure(.inputOutput, "gattherd \(command): cannot copy \(source): \(reason)")
        }
    }

    /// Writes the folder to a new archive, which only this user can read.
    func write(to target: String) async throws(CommandFailure) {
        let descriptor = unsafe open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(.cannotCreate, "gattherd \(command): cannot create \(target): \(reason)")
        }
        defer { close(descriptor) }
        let arguments = ["--create", "--sort=name", "--owner=0", "--group=0", "--directory", path, "--file", "-", "."]
        do throws(CommandFailure) {
            try await tar(arguments, output: .descriptor(descriptor))
            guard fsync(descriptor) == 0 else {
                throw CommandFailure(.inputOutput, "gattherd \(command): cannot write \(target)")
            }
        } catch {
            unsafe unlink(target)
            throw error
        }
    }

    /// Fills the folder from an archive, which may come from anybody.
    ///
    /// - Throws: ``CommandFailure`` if it is no archive, or has anything else than files and folders.
    func read(_ archive: String) async throws(CommandFailure) {
        guard unsafe access(archive, R_OK) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(.noInput, "gattherd \(command): cannot read \(archive): \(reason)")
        }
        try await tar(["--extract", "--no-same-owner", "--directory", path, "--file", archive], output: .null)
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
        for name in names {
            var status = stat()
            guard unsafe lstat(file(name), &status) == 0, [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else {
                throw CommandFailure(.data, "gattherd \(command): \(archive): '\(name)' is no file; it is no backup")
            }
        }
    }

    private func tar(_ arguments: [String], output: ChildProcess.Output) async throws(CommandFailure) {
        let program: ChildProcess
        do throws(SpawnError) {
            program = try ChildProcess("tar", arguments, output: output)
        } catch {
            throw CommandFailure(.unavailable, "gattherd \(command): \(error)")
        }
        guard await program.wait() == .exited(0) else {
            throw CommandFailure(.inputOutput, "gattherd \(command): tar failed")
        }
    }
}
