import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdProcess
import GattherdSync
import Glibc

extension CommandSpec {
    static let restore = CommandSpec(
        name: "restore",
        summary: "replace configuration and history by a backup; stop the daemon first",
        positionals: [PositionalSpec(name: "FILE")],
        options: [ConfigurationFile.option, .flag("bonds", "restore the keys of bonded devices, as root")],
        details: """
            FILE is one that 'gattherd backup' has written. Replaced files stay beside the new ones, with .replaced-DATE at
            their ends. As root, configuration files belong to root and the daemon's group, which can read them, and a missing
            folder of history is made for the daemon's user. Sequence numbers are not reused, and the restored history
            begins a new epoch. Readings that waited for delivery at the time of the backup are delivered again.

            Each file is replaced in one step. If the command is interrupted, run it again.

            Never run two gateways with one identity: stop the old one before.
            """,
        exits: [
            .data: "FILE is not a backup, or damaged", .noInput: "FILE cannot be read",
            .unavailable: "the daemon uses the history of the backup or of the present configuration; stop it first",
            .cannotCreate: "this user may not replace the files", .inputOutput: "the disk is full or fails",
        ],
        examples: ["sudo systemctl stop gattherd && sudo gattherd restore /mnt/gattherd-2026-11-01.tar"],
        run: { (arguments) async throws(CommandFailure) in try await RestoreCommand(arguments).run() }
    )
}

/// Puts the content of a backup in its places.
struct RestoreCommand {
    private let archive: String
    private let file: ConfigurationFile
    private let bonds: String?
    private let now = SystemClock.now

    init(_ arguments: Arguments) {
        archive = arguments.positional(0) ?? ""
        file = ConfigurationFile(arguments)
        bonds = arguments.has("bonds") ? BackupCommand.bondFolder : nil
    }

    func run() async throws(CommandFailure) {
        let folder = try StagingFolder("restore")
        defer { folder.remove() }
        ProcessSignals.end(on: SIGINT, SIGTERM, SIGHUP) {
            // The rights of this user, also during work with those of the daemon's.
            _ = seteuid(getuid())
            folder.remove()
        }
        try await BackupArchive(archive, command: "restore").extract(to: folder)
        let manifest = try BackupManifest.read(from: folder, archive)
        var files = ConfigurationRestore(folder, manifest, to: file, at: now)
        let configuration = files.configuration
        let history = configuration.history.path.value
        let daemon = FileAccount.daemon(of: file, stateFolder: history.parentFolder)
        let lock = try lockPresentHistory(besides: history)
        try makeStateFolder(history.parentFolder, daemon)
        try restore(folder, configuration, &files, daemon)
        withExtendedLifetime(lock) {}
        report(manifest)
    }

    /// Writes drafts of all files, restores the history, and then renames the drafts into place.
    ///
    /// Fails before the history is changed if the daemon runs.
    private func restore(
        _ folder: StagingFolder,
        _ configuration: Configuration,
        _ files: inout ConfigurationRestore,
        _ daemon: FileAccount
    ) throws(CommandFailure) {
        let history = configuration.history.path.value
        // The folder of history has the daemon's links, which root must not follow.
        let owner = FileAccount.owner(of: history.parentFolder) ?? daemon
        let state = try stateFiles(folder, configuration)
        try files.prepare(for: daemon)
        try openHistory(folder, to: owner)
        var lock: HistoryLock?
        try owner.run { () throws(CommandFailure) in
            lock = try Self.lock(history)
            try restoreHistory(folder, to: history, lock)
            try Self.writing { () throws(FileError) in
                var replacement = FileReplacement(now)
                for (path, content) in state { try replacement.add(path, content, owner: owner, mode: 0o640) }
                try replacement.finish()
            }
        }
        try files.finish()
        try BondRestore(folder: bonds, time: now).run(folder)
        withExtendedLifetime(lock) {}
    }

    /// Locks the history of the present configuration, if the backup names another one.
    ///
    /// - Returns: The lock; `nil` if no daemon ever used such a history.
    /// - Throws: ``CommandFailure`` if a daemon uses it, which would run on without its configuration.
    private func lockPresentHistory(besides restored: String) throws(CommandFailure) -> HistoryLock? {
        let present = file.parsedLeniently().configuration.history.path.value
        guard let place = Self.lockFile(of: present), place != Self.lockFile(of: restored) else { return nil }
        let owner = FileAccount.owner(of: present.parentFolder) ?? .current
        do throws(StoreFault) {
            return try owner.run { () throws(StoreFault) in try HistoryLock(database: present) }
        } catch {
            guard error.kind == .inUse else { return nil }
            let words = "a daemon with this configuration uses \(present); stop it first"
            throw CommandFailure(.unavailable, "gattherd restore: \(file.path): \(words)")
        }
    }

    /// The real path of the file that a daemon locks; `nil` without one.
    private static func lockFile(of database: String) -> String? {
        guard let real = unsafe realpath(DatabaseName.resolved(database) + "-lock", nil) else { return nil }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }

    /// Makes the folder of history as systemd would make it.
    private func makeStateFolder(_ path: String, _ daemon: FileAccount) throws(CommandFailure) {
        try? FileManager.default.createDirectory(atPath: path.parentFolder, withIntermediateDirectories: true)
        try Self.writing { () throws(FileError) in
            guard unsafe mkdir(path, 0o750) == 0 else {
                if errno == EEXIST { return }
                throw FileError(errno, path)
            }
            guard geteuid() == 0 else { return }
            // Whatever the mask is: the group must enter it.
            guard unsafe chmod(path, 0o750) == 0 else { throw FileError(errno, path) }
            guard unsafe lchown(path, daemon.user, daemon.group) == 0 else { throw FileError(errno, path) }
        }
    }

    static func writing(_ body: () throws(FileError) -> Void) throws(CommandFailure) {
        do throws(FileError) { try body() } catch {
            let code: CommandFailure.Code = [ENOSPC, EIO, EDQUOT].contains(error.code) ? .inputOutput : .cannotCreate
            throw CommandFailure(code, "gattherd restore: cannot write \(error)")
        }
    }

    // MARK: - State

    /// The content of the files of outputs, by their paths.
    private func stateFiles(
        _ folder: StagingFolder,
        _ configuration: Configuration
    ) throws(CommandFailure) -> [(path: String, content: [UInt8])] {
        let history = configuration.history.path.value.parentFolder
        let known = Set(StateFiles.names(configuration))
        return folder.files(in: BackupPlan.state).filter { known.contains($0) }.compactMap { name in
            FileManager.default.contents(atPath: folder.file("\(BackupPlan.state)/\(name)"))
                .map { (path: history + "/" + name, content: Array($0)) }
        }
    }

    /// Lets the owner of the folder of history read the copy of history.
    private func openHistory(_ folder: StagingFolder, to owner: FileAccount) throws(CommandFailure) {
        let copy = folder.file(BackupPlan.history)
        guard geteuid() == 0, owner.user != 0, unsafe access(copy, F_OK) == 0 else { return }
        do throws(FileError) { try folder.share(BackupPlan.history, with: owner.user) } catch {
            throw CommandFailure(.inputOutput, "gattherd restore: \(error)")
        }
        var isReadable = false
        owner.run { isReadable = unsafe faccessat(AT_FDCWD, copy, R_OK, AT_EACCESS) == 0 }
        guard isReadable else {
            let remedy = "unset TMPDIR, or let it name a folder that this user may enter"
            throw CommandFailure(.inputOutput, "gattherd restore: user \(owner.user) cannot read \(copy); \(remedy)")
        }
    }

    private static func lock(_ history: String) throws(CommandFailure) -> HistoryLock {
        do throws(StoreFault) { return try HistoryLock(database: history) } catch {
            throw CommandFailure(error, refused: .cannotCreate)
        }
    }

    private func restoreHistory(
        _ folder: StagingFolder,
        to path: String,
        _ lock: HistoryLock?
    ) throws(CommandFailure) {
        let copy = folder.file(BackupPlan.history)
        guard FileManager.default.fileExists(atPath: copy) else {
            return Terminal.printError("gattherd restore: the backup has no history")
        }
        do throws(StoreFault) {
            let source = try RestoreSource(copy, remedy: BackupManifest.remedy)
            let restore = try Restore(source, to: path, at: now, lock)
            Terminal.say("\(path): \(restore.samples) samples, \(mebibytes(restore.size))")
            if let replaced = restore.replaced { Terminal.say("\(replaced): the replaced history") }
        } catch {
            // The copy is removed at the end of the command.
            let detail = error.detail.replacing(copy, with: "\(BackupPlan.history) in \(archive)")
            throw CommandFailure(StoreFault(detail, error.kind), refused: .cannotCreate)
        }
    }

    // MARK: - Report

    private func report(_ manifest: BackupManifest) {
        Terminal.say("\(file.path): the gateway \(manifest.gateway), as of \(manifest.created)")
        for path in manifest.elsewhere {
            Terminal.printError("gattherd restore: not in the backup, copy it yourself: \(path)")
        }
        let findings = ServiceAccess(file)?.findings(file.parsedLeniently().configuration) ?? []
        for finding in findings { Terminal.printError("gattherd restore: \(finding)") }
        Terminal.say("now run: gattherd check \(file.path), then start the daemon")
    }
}
