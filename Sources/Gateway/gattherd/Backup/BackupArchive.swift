import CLinux
import FoundationEssentials
import GattherdProcess
import GattherdSync
import Glibc

/// A tar archive with the content of a staging folder.
struct BackupArchive {
    /// The end of an archive's name while it is written.
    static let draftEnding = ".part"

    let path: String
    private let command: String

    /// - Parameters:
    ///   - path: The archive.
    ///   - command: The command, for messages.
    init(_ path: String, command: String) {
        (self.path, self.command) = (path, command)
    }

    /// Creates an archive, which only this user can read, from a folder.
    ///
    /// The archive is renamed into place when it is complete and synced.
    ///
    /// - Throws: ``CommandFailure`` if there is such a file, or it cannot be written.
    func create(from folder: StagingFolder) async throws(CommandFailure) {
        let draft = try makeDraft()
        let arguments = ["--create", "--owner=0", "--group=0", "--sort=name", "--directory", folder.path]
        guard try await tar(arguments + ["--file", "-", "."], output: .descriptor(draft.descriptor)) else {
            throw CommandFailure(.inputOutput, "gattherd \(command): \(path) cannot be written: tar failed")
        }
        do throws(FileError) { try draft.create() } catch {
            throw error.code == EEXIST ? existingFile : failure(.inputOutput, error)
        }
    }

    private func makeDraft() throws(CommandFailure) -> FileDraft {
        var status = stat()
        guard unsafe lstat(path, &status) != 0 else {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw existingFile }
            let advice = "name a file in it, or add --keep COUNT"
            throw CommandFailure(.cannotCreate, "gattherd \(command): \(path) is a folder; \(advice)")
        }
        do throws(FileError) {
            let draft = try FileDraft(of: path, suffix: Self.draftEnding)
            // A rotation leaves locked drafts alone.
            flock(draft.descriptor, LOCK_EX | LOCK_NB)
            return draft
        } catch {
            guard error.code == ENOENT else { throw failure(.cannotCreate, error) }
            throw CommandFailure(.cannotCreate, "gattherd \(command): \(path): its folder is missing; make it first")
        }
    }

    /// Extracts the archive, which is untrusted, to a folder.
    ///
    /// - Throws: ``CommandFailure`` if it is not an archive, or contains anything other than files and folders.
    func extract(to folder: StagingFolder) async throws(CommandFailure) {
        try expectReadableFile()
        let source = ["--file", path, "--directory", folder.path]
        guard try await tar(source + ["--extract", "--no-same-owner", "--no-overwrite-dir"], output: .null) else {
            let isWhole = try await tar(["--file", path, "--list"], output: .null, errors: .null)
            guard isWhole else {
                throw CommandFailure(.data, "gattherd \(command): \(path) is not a backup, or is damaged")
            }
            throw CommandFailure(.inputOutput, "gattherd \(command): \(path) cannot be unpacked to \(folder.path)")
        }
        guard let names = try? FileManager.default.subpathsOfDirectory(atPath: folder.path) else {
            let reason = "not a gattherd backup: it has folders that cannot be listed"
            throw CommandFailure(.data, "gattherd \(command): \(path): \(reason)")
        }
        for name in names {
            var status = stat()
            guard unsafe lstat(folder.file(name), &status) == 0, [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
            else {
                let reason = "not a gattherd backup: '\(name)' is not a regular file"
                throw CommandFailure(.data, "gattherd \(command): \(path): \(reason)")
            }
        }
    }

    private func expectReadableFile() throws(CommandFailure) {
        var status = stat()
        guard unsafe stat(path, &status) == 0, unsafe access(path, R_OK) == 0 else {
            throw failure(.noInput, FileError(errno, path))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw CommandFailure(.noInput, "gattherd \(command): \(path) is not a file; name a backup")
        }
    }

    private var existingFile: CommandFailure {
        let advice = "choose another name, or remove it"
        return CommandFailure(.cannotCreate, "gattherd \(command): \(path): the file exists already; \(advice)")
    }

    private func failure(_ code: CommandFailure.Code, _ error: FileError) -> CommandFailure {
        CommandFailure(code, "gattherd \(command): \(path): \(error.reason)")
    }

    /// Runs tar; false if it fails.
    private func tar(
        _ arguments: [String],
        output: ChildProcess.Output,
        errors: ChildProcess.Output = .inherit
    ) async throws(CommandFailure) -> Bool {
        do throws(SpawnError) {
            return try await ChildProcess("tar", arguments, output: output, errors: errors).wait() == .exited(0)
        } catch {
            throw CommandFailure(.unavailable, "gattherd \(command): \(error)")
        }
    }
}
