import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdHistory
import GattherdModel
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
        ],
        details: """
            FILE must not exist. It is a tar archive that only its owner can read: it has the passwords and tokens that the
            configuration names in its own folder. Files elsewhere are listed and left out. The history is a copy as of one
            moment.

            Bonds belong to the address of the adapter. They are of use only if the adapter moves too, and whoever has the
            file can read and imitate the devices.
            """,
        exits: [
            .data: "the history is damaged", .cannotCreate: "FILE already exists, or cannot be created",
            .inputOutput: "a file cannot be read, or the disk is full", .unavailable: "there is no history",
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

    init(_ arguments: Arguments) throws(CommandFailure) {
        target = arguments.positional(0) ?? ""
        file = ConfigurationFile(arguments)
        bonds = arguments.has("bonds") ? Self.bondFolder : nil
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
            throw CommandFailure(.inputOutput, "gattherd backup: \(bonds) cannot be read; run this as root")
        }
        let plan = BackupPlan(file, configuration, bonds: bonds)
        let folder = try ArchiveFolder("backup")
        defer { folder.remove() }
        try copyHistory(configuration.history.path.value, to: folder)
        for each in plan.files { try folder.add(each.path, as: each.name) }
        let manifest = BackupManifest(
            gateway: configuration.gateway,
            main: plan.main,
            created: now.rfc3339,
            elsewhere: plan.elsewhere
        )
        try folder.write(manifest)
        try await folder.write(to: target)
        rotation?.removeOld()
        report(target, plan)
    }

    /// Copies the history; a gateway that never ran has none.
    private func copyHistory(_ path: String, to folder: ArchiveFolder) throws(CommandFailure) {
        guard FileManager.default.fileExists(atPath: path) else {
            return Terminal.printError("gattherd backup: there is no history at \(path) yet")
        }
        do throws(StoreFault) {
            try HistoryReader(path: path).backUp(to: folder.file(BackupPlan.history))
        } catch {
            throw CommandFailure(error, refused: .cannotCreate)
        }
    }

    private func report(_ target: String, _ plan: BackupPlan) {
        Terminal.say("\(target): the history and \(plan.files.count) files")
        for path in plan.elsewhere {
            Terminal.printError("gattherd backup: not in the backup, because it is elsewhere: \(path)")
        }
        let count = plan.files.count { $0.name.hasPrefix(BackupPlan.bonds + "/") }
        if count > 0 {
            Terminal.printError("gattherd backup: it has the keys of \(count) bonds; keep it like a password")
        }
    }
}

extension ArchiveFolder {
    func write(_ manifest: BackupManifest) throws(CommandFailure) {
        do {
            try Data(manifest.json).write(to: URL(filePath: file(BackupPlan.manifest)))
        } catch {
            throw CommandFailure(.inputOutput, "gattherd backup: cannot write to \(path): \(error)")
        }
    }
}

/// Backups in one folder, of which the newest stay.
struct BackupRotation {
    private static let ending = ".tar"

    private let folder: String
    private let start: String
    private let count: Int

    /// - Parameters:
    ///   - folder: The folder.
    ///   - gateway: The gateway, whose name is a part of the names of its backups.
    ///   - count: The number of backups that stay.
    init(folder: String, gateway: String, count: Int) {
        self.folder = folder
        start = "gattherd-\(gateway)-"
        self.count = count
    }

    /// The path of the backup of this time.
    func path(at time: Timestamp) -> String {
        let stamp = time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }
        return "\(folder)/\(start)\(stamp)Z\(Self.ending)"
    }

    /// Removes the oldest backups.
    func removeOld() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names.filter(isBackup).sorted().dropLast(count) { unsafe unlink(folder + "/" + name) }
    }

    /// True for the name of a backup of the gateway: its times sort as texts.
    private func isBackup(_ name: String) -> Bool {
        guard name.hasPrefix(start), name.hasSuffix(Self.ending) else { return false }
        let stamp = name.dropFirst(start.count).dropLast(Self.ending.count)
        return stamp.count == 16 && stamp.allSatisfy { $0.isASCII && ($0.isNumber || $0 == "T" || $0 == "Z") }
    }
}
