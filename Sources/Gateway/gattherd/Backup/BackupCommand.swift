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
    static let backup = CommandSpec(
        name: "backup",
        summary: "copy configuration, profiles, history and identity into one file; also while the daemon runs",
        positionals: [PositionalSpec(name: "FILE")],
        options: [
            ConfigurationFile.option,
            .value("keep", "COUNT", "FILE is a folder: make a file in it, and remove the oldest beyond COUNT"),
            .flag("bonds", "add the keys of bonded devices, as root"),
            .flag("no-history", "leave the history out; for a gateway that never ran"),
        ],
        details: """
            FILE must not exist. It is a tar archive that only its owner can read: it has the passwords and tokens that the
            configuration names in its own folder. Files elsewhere are listed and left out. The history is a copy as of one
            moment. FILE gets its name when it is complete.

            With --keep, names have a number, which gives their order, and the time. The new backup always stays.

            Bonds belong to the address of the adapter. They are of use only if the adapter moves too, and whoever has the
            file can read and imitate the devices.
            """,
        exits: [
            .data: "the history is damaged", .cannotCreate: "FILE already exists, or cannot be created",
            .inputOutput: "a file cannot be read, or the disk is full",
            .unavailable: "there is no history; see --no-history",
        ],
        examples: [
            "sudo gattherd backup /mnt/gattherd-$(date +%F).tar",
            "sudo gattherd backup /var/backups/gattherd --keep 7",
        ],
        run: { (arguments) async throws(CommandFailure) in try await BackupCommand(arguments).run() }
    )
}

/// Writes a backup.
struct BackupCommand {
    /// The folder of bluetoothd.
    static let bondFolder = "/var/lib/bluetooth"

    private let target: String
    private let kept: Int?
    private let file: ConfigurationFile
    private let bonds: String?
    private let hasHistory: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        target = arguments.positional(0) ?? ""
        file = ConfigurationFile(arguments)
        bonds = arguments.has("bonds") ? Self.bondFolder : nil
        hasHistory = !arguments.has("no-history")
        kept = try arguments.value("keep").map { (text) throws(CommandFailure) -> Int in
            guard let count = Int(text), (1...10_000).contains(count) else {
                throw CommandSpec.backup.misuse("--keep is a number from 1 to 10000")
            }
            return count
        }
    }

    func run() async throws(CommandFailure) {
        let configuration = try file.load()
        let now = SystemClock.now
        let rotation = kept.map { BackupRotation(folder: self.target, gateway: configuration.gateway, count: $0) }
        let target = rotation?.path(at: now) ?? self.target
        if let bonds, unsafe access(bonds, R_OK) != 0 {
            let error = SystemError.current
            let remedy = error.code == ENOENT ? "leave out --bonds" : "run this as root"
            throw CommandFailure(.inputOutput, "gattherd backup: \(bonds) cannot be read: \(error); \(remedy)")
        }
        let plan = BackupPlan(file, configuration, bonds: bonds)
        guard plan.files.contains(where: { $0.name == plan.main }) else {
            throw CommandFailure(.inputOutput, "gattherd backup: cannot read \(file.path)")
        }
        let folder = try StagingFolder("backup")
        defer { folder.remove() }
        ProcessSignals.end(on: SIGINT, SIGTERM, SIGHUP) {
            folder.remove()
            unsafe unlink(target + BackupArchive.draftEnding)
        }
        if hasHistory { try copyHistory(configuration.history.path.value, to: folder) }
        let state = configuration.history.path.value.parentFolder
        let access = FolderAccess(file, FileAccount.daemon(of: file, stateFolder: state))
        let files = try copy(plan, access, to: folder)
        let manifest = BackupManifest(
            gateway: configuration.gateway,
            main: plan.main,
            created: now.rfc3339,
            elsewhere: plan.elsewhere,
            files: (hasHistory ? [BackupPlan.history] : []) + files
        )
        try write(manifest.json, as: BackupPlan.manifest, to: folder)
        try await BackupArchive(target, command: "backup").create(from: folder)
        rotation?.removeOld(after: target)
        report(target, files.count, plan)
    }

    private func copyHistory(_ path: String, to folder: StagingFolder) throws(CommandFailure) {
        guard FileManager.default.fileExists(atPath: path) else {
            let remedy = "correct history.path, or use --no-history for a gateway that never ran"
            throw CommandFailure(.unavailable, "gattherd backup: there is no history at \(path); \(remedy)")
        }
        do throws(StoreFault) {
            try HistoryReader(path: path).backUp(to: folder.file(BackupPlan.history))
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Copies all files except the history; returns their names.
    private func copy(
        _ plan: BackupPlan,
        _ access: FolderAccess,
        to folder: StagingFolder
    ) throws(CommandFailure) -> [String] {
        for each in plan.files {
            let (content, mode) = try Self.content(of: each, access)
            try write(content, as: each.name, mode: mode, to: folder)
        }
        return plan.files.map(\.name) + (try copyState(plan.stateFiles, to: folder))
    }

    /// The content and the permissions of a file, read with the rights for its folder.
    static func content(
        of file: BackupPlan.File,
        _ access: FolderAccess
    ) throws(CommandFailure) -> ([UInt8], mode_t) {
        // The daemon cannot put links into the folder of bluetoothd.
        if file.isBond { return try content(file.path) }
        return try access.run(in: file.path.parentFolder) { () throws(CommandFailure) in try content(file.path) }
    }

    private static func content(_ path: String) throws(CommandFailure) -> ([UInt8], mode_t) {
        var status = stat()
        let isFile = unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        guard isFile, let content = FileManager.default.contents(atPath: path) else {
            let isReadable = unsafe faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0
            let reason = isReadable ? "it is not a file" : FileError(errno, path).reason
            throw CommandFailure(.inputOutput, "gattherd backup: cannot copy \(path): \(reason)")
        }
        return (Array(content), status.st_mode & 0o777)
    }

    private func copyState(_ files: [BackupPlan.File], to folder: StagingFolder) throws(CommandFailure) -> [String] {
        var names: [String] = []
        for each in files {
            do throws(FileError) {
                guard let content = try StateFiles.read(each.path) else { continue }
                try folder.write(content, as: each.name)
                names.append(each.name)
            } catch {
                throw CommandFailure(.inputOutput, "gattherd backup: cannot copy \(each.path): \(error.reason)")
            }
        }
        return names
    }

    private func write(
        _ content: [UInt8],
        as name: String,
        mode: mode_t = 0o600,
        to folder: StagingFolder
    ) throws(CommandFailure) {
        do throws(FileError) { try folder.write(content, as: name, mode: mode) } catch {
            throw CommandFailure(.inputOutput, "gattherd backup: cannot write \(error)")
        }
    }

    private func report(_ target: String, _ count: Int, _ plan: BackupPlan) {
        let words = count == 1 ? "1 file" : "\(count) files"
        Terminal.say("\(target): \(hasHistory ? "the history and " : "")\(words)")
        for path in plan.elsewhere {
            let isInside = path.relative(toFolder: file.path.parentFolder) != nil
            let reason = isInside ? "there is no such file" : "it is elsewhere"
            Terminal.printError("gattherd backup: not in the backup, because \(reason): \(path)")
        }
        let bonds = plan.files.count(where: \.isBond)
        if bonds > 0 {
            let words = bonds == 1 ? "the keys of a bond" : "the keys of \(bonds) bonds"
            Terminal.printError("gattherd backup: the backup has \(words); keep it secret like a password")
        }
    }
}
