import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdModel
import GattherdSync
import Glibc

extension CommandSpec {
    static let migrate = CommandSpec(
        name: "migrate",
        summary: "rewrite the configuration with the key names of this version",
        positionals: [PositionalSpec(name: "FILE", isOptional: true)],
        options: [
            .flag("check", "change nothing; the exit code says whether there is something to do"),
            .flag("write", "replace the files; the old ones stay beside them"), ConfigurationFile.option,
        ],
        details: """
            Files with old names of keys stay valid: the daemon reads them, and 'gattherd check' warns. This command prints
            the difference between such files and new ones, for FILE and gattherd.d beside it. Only the names change;
            comments, order and layout stay.

            With --write, each file is replaced in one step, if the new files have the same meaning as the old ones. The old
            file stays beside the new one, with .replaced-DATE at its end.
            """,
        exits: [
            .general: "with --check: there are old names", .configuration: "a file cannot be read, or is not YAML",
            .cannotCreate: "this user may not replace the files", .inputOutput: "the disk is full or fails",
            .software: "a new file would have another meaning; nothing is changed",
        ],
        examples: ["gattherd migrate", "gattherd migrate --check", "sudo gattherd migrate --write"],
        run: { (arguments) throws(CommandFailure) in try MigrateCommand(arguments).run() }
    )
}

/// Rewrites the files of a configuration with the newest names of keys.
struct MigrateCommand {
    private let file: ConfigurationFile
    private let isCheck: Bool
    private let isWriting: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        let named = [arguments.positional(0), arguments.value("config")].compactMap(\.self)
        guard named.count < 2 else {
            throw CommandSpec.migrate.misuse("there are two files, '\(named[0])' and '\(named[1])'; name one")
        }
        (isCheck, isWriting) = (arguments.has("check"), arguments.has("write"))
        guard !isCheck || !isWriting else { throw CommandSpec.migrate.misuse("use --check or --write, not both") }
        file = ConfigurationFile(named.first)
    }

    func run() throws(CommandFailure) {
        let migration = try FileMigration(file)
        guard !migration.isEmpty else {
            return Terminal.say("\(file.path): nothing to do: all keys have the names of this version")
        }
        guard !isCheck else {
            for key in migration.oldKeys { Terminal.say(key.finding.description) }
            throw CommandFailure(.general, nil)
        }
        for line in migration.difference { Terminal.say(line) }
        guard isWriting else {
            return Terminal.printError("gattherd migrate: nothing is changed yet; run it with --write")
        }
        for path in try migration.write(at: SystemClock.now) { Terminal.say("\(path): replaced") }
        Terminal.say("now run: gattherd check \(file.path)")
    }
}

/// The files of a configuration that have old names of keys, with their new texts.
struct FileMigration {
    private let file: ConfigurationFile
    private let renames: [ConfigRename]
    private var all: [(source: ConfigSource, migration: ConfigMigration)] = []

    /// - Throws: ``CommandFailure`` if a file cannot be read, is not YAML, or would get another meaning.
    init(_ file: ConfigurationFile, _ renames: [ConfigRename] = ConfigRename.all) throws(CommandFailure) {
        (self.file, self.renames) = (file, renames)
        for path in file.paths {
            let source = try Self.source(path)
            do throws(ConfigErrors) { all.append((source, try ConfigMigration(source, renames))) } catch {
                throw CommandFailure(.configuration, error.description)
            }
        }
        try expectSameMeaning()
    }

    var oldKeys: [OldKey] { all.flatMap(\.migration.oldKeys) }

    var isEmpty: Bool { oldKeys.isEmpty }

    /// The lines that change, in the unified format.
    var difference: [String] {
        all.flatMap { source, migration in
            let (old, new) = (String(decoding: source.bytes, as: UTF8.self), migration.bytes)
            return LineDifference(old, String(decoding: new, as: UTF8.self)).lines(of: source.name)
        }
    }

    /// Replaces the files with old names; their owners and permissions stay.
    ///
    /// - Returns: The paths.
    func write(at time: Timestamp) throws(CommandFailure) -> [String] {
        let changed = all.filter { !$0.migration.oldKeys.isEmpty }
        let state = ConfigurationFile.configuration(of: all.map(\.source)).history.path.value.parentFolder
        let daemon = FileAccount.daemon(of: file, stateFolder: state)
        let access = FolderAccess(file, daemon)
        var (own, shared) = (FileReplacement(time), FileReplacement(time, as: daemon))
        do throws(FileError) {
            for (source, migration) in changed {
                let (owner, mode) = try Self.access(source.name)
                if access.isShared(source.name.parentFolder) {
                    try shared.add(source.name, migration.bytes, owner: daemon, mode: mode)
                } else {
                    try own.add(source.name, migration.bytes, owner: owner, mode: mode)
                }
            }
            try own.finish()
            try shared.finish()
        } catch {
            let code: CommandFailure.Code = [ENOSPC, EIO, EDQUOT].contains(error.code) ? .inputOutput : .cannotCreate
            let advice = error.code == EACCES || error.code == EPERM ? "; run the command as root" : ""
            throw CommandFailure(code, "gattherd migrate: cannot write \(error)\(advice)")
        }
        return changed.map(\.source.name)
    }

    /// The owner and the permissions of a file.
    private static func access(_ path: String) throws(FileError) -> (FileAccount, mode_t) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw FileError(errno, path) }
        // The new file would take the place of the link.
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(ELOOP, path) }
        return (FileAccount(user: status.st_uid, group: status.st_gid), status.st_mode & 0o777)
    }

    private static func source(_ path: String) throws(CommandFailure) -> ConfigSource {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw CommandFailure(.configuration, "gattherd migrate: cannot read \(FileError(errno, path))")
        }
        return ConfigSource(name: path, bytes: Array(data))
    }

    private func expectSameMeaning() throws(CommandFailure) {
        guard !isEmpty else { return }
        let before = file.reading(all.map(\.source), renames)
        let after = file.reading(all.map { ConfigSource(name: $0.source.name, bytes: $0.migration.bytes) }, renames)
        guard after == before else {
            let words = "the new files would have another meaning; change the keys by hand"
            throw CommandFailure(.software, "gattherd migrate: \(words)\n" + keysByHand)
        }
    }

    private var keysByHand: String { oldKeys.map(\.finding.description).joined(separator: "\n") }
}
