import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdHistory
import GattherdModel
import Glibc

extension CommandSpec {
    static let restore = CommandSpec(
        name: "restore",
        summary: "put a backup in the place of configuration and history; stop the daemon first",
        positionals: [PositionalSpec(name: "FILE")],
        options: [ConfigurationFile.option, .flag("bonds", "restore the keys of bonded devices, as root")],
        details: """
            FILE is one that 'gattherd backup' has written. Replaced files stay beside the new ones, with .replaced-DATE at
            their ends. Files get the owner that the daemon needs. Sequence numbers are not reused, and the restored history
            begins a new epoch. Readings that waited for delivery at the time of the backup are delivered again.

            Never run two gateways with one identity: stop the old one before.
            """,
        exits: [
            .data: "FILE is no backup, or damaged", .noInput: "FILE cannot be read",
            .unavailable: "the daemon uses the history; stop it first",
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
        let folder = try ArchiveFolder("restore")
        defer { folder.remove() }
        try await folder.read(archive)
        let json = FileManager.default.contents(atPath: folder.file(BackupPlan.manifest)) ?? Data()
        let manifest = try BackupManifest(Array(json))
        let history = historyPath(folder, manifest)
        // The first step refuses if the daemon runs.
        try restoreHistory(folder, to: history)
        let account = FileAccount(folder: history.folderPath)
        let replacement = FileReplacement(now, account)
        let main = manifest.main.dropFirst(BackupPlan.configuration.count + 1)
        for name in folder.files(in: BackupPlan.configuration) {
            let target = name == main ? file.path : file.path.folderPath + "/" + name
            try replacement.replace(target, by: folder.file("\(BackupPlan.configuration)/\(name)"), isOwned: false)
        }
        for name in folder.files(in: BackupPlan.state) {
            let target = history.folderPath + "/" + name
            try replacement.replace(target, by: folder.file("\(BackupPlan.state)/\(name)"), isOwned: true)
        }
        try restoreBonds(folder, replacement)
        report(manifest)
    }

    /// The path of history that the configuration in the backup gives.
    private func historyPath(_ folder: ArchiveFolder, _ manifest: BackupManifest) -> String {
        let prefix = BackupPlan.configuration + "/"
        let names = folder.files(in: BackupPlan.configuration).map { prefix + $0 }
        let fragments = names.filter { $0.hasPrefix(prefix + "gattherd.d/") && $0.hasSuffix(".yaml") }
        let sources = ([manifest.main] + fragments).map { name in
            let path = name == manifest.main ? file.path : file.path.folderPath + "/" + name.dropFirst(prefix.count)
            return (name: path, bytes: Array(FileManager.default.contents(atPath: folder.file(name)) ?? Data()))
        }
        return ConfigurationFile.historyPath(of: sources)
    }

    private func restoreHistory(_ folder: ArchiveFolder, to path: String) throws(CommandFailure) {
        let copy = folder.file(BackupPlan.history)
        guard FileManager.default.fileExists(atPath: copy) else {
            return Terminal.say("the backup has no history: its gateway never ran")
        }
        do throws(StoreFault) {
            let restore = try Restore(copy, to: path, at: now)
            Terminal.say("\(path): \(restore.samples) samples, \(mebibytes(restore.size))")
            if let replaced = restore.replaced { Terminal.say("\(replaced): the replaced history") }
        } catch {
            throw CommandFailure(error, refused: .cannotCreate)
        }
    }

    private func restoreBonds(_ folder: ArchiveFolder, _ replacement: FileReplacement) throws(CommandFailure) {
        let names = folder.files(in: BackupPlan.bonds)
        guard !names.isEmpty else { return }
        guard let bonds else {
            return Terminal.printError("gattherd restore: the backup has \(names.count) bonds; --bonds restores them")
        }
        for name in names {
            let adapter = bonds + "/" + (name.split(separator: "/").first ?? "")
            guard FileManager.default.fileExists(atPath: adapter) else {
                Terminal.printError("gattherd restore: not restored, because this host has no such adapter: \(name)")
                continue
            }
            try replacement.replace(
                "\(bonds)/\(name)",
                by: folder.file("\(BackupPlan.bonds)/\(name)"),
                isOwned: false,
                keepsOld: false
            )
        }
        Terminal.printError("gattherd restore: bluetoothd reads bonds at its start: systemctl restart bluetooth")
    }

    private func report(_ manifest: BackupManifest) {
        Terminal.say("\(file.path): the gateway \(manifest.gateway), as of \(manifest.created)")
        for path in manifest.elsewhere {
            Terminal.printError("gattherd restore: not in the backup, copy it yourself: \(path)")
        }
        Terminal.say("now run: gattherd check \(file.path), then start the daemon")
    }
}

extension ArchiveFolder {
    /// The names of all files in a folder of the archive, relative to it, in order.
    func files(in folder: String) -> [String] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: file(folder))) ?? []
        return names.sorted().filter { name in
            var isFolder = false
            let path = file(folder + "/" + name)
            return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder
        }
    }
}
