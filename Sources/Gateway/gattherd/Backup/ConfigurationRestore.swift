import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdModel
import GattherdSync
import Glibc

/// Restores the files of the configuration.
///
/// Root and the daemon's group own these files; the group can read all of them and write none. In folders that the
/// daemon can change, such as `gattherd.d`, the daemon owns them.
struct ConfigurationRestore {
    private let folder: StagingFolder
    private let manifest: BackupManifest
    private let file: ConfigurationFile
    private let time: Timestamp
    /// The files that this user writes, then those that are written with the daemon's rights.
    private var replacements: [FileReplacement] = []

    init(_ folder: StagingFolder, _ manifest: BackupManifest, to file: ConfigurationFile, at time: Timestamp) {
        (self.folder, self.manifest, self.file, self.time) = (folder, manifest, file, time)
    }

    /// The configuration in the backup, as if it were installed; mistakes are ignored.
    var configuration: Configuration {
        let main = String(manifest.main.dropFirst(BackupPlan.configuration.count + 1))
        let others = folder.files(in: BackupPlan.configuration).filter {
            $0.hasPrefix("gattherd.d/") && $0.hasSuffix(".yaml")
        }
        let sources = ([main] + others).map { name in
            let content = FileManager.default.contents(atPath: folder.file("\(BackupPlan.configuration)/\(name)"))
            return ConfigSource(name: place(of: name), bytes: Array(content ?? Data()))
        }
        return ConfigurationFile.configuration(of: sources)
    }

    /// Writes the files beside their places.
    mutating func prepare(for daemon: FileAccount) throws(CommandFailure) {
        let names = folder.files(in: BackupPlan.configuration)
        if names.contains(where: { $0.hasPrefix("gattherd.d/") }) { try makeFragmentFolder(daemon) }
        let access = FolderAccess(file, daemon)
        var (own, shared) = (FileReplacement(time), FileReplacement(time, as: daemon))
        for name in names {
            let isShared = access.isShared(place(of: name).parentFolder)
            if isShared {
                try add(name, to: &shared, owner: daemon)
            } else {
                let owner = geteuid() == 0 ? FileAccount(user: 0, group: daemon.group) : .current
                try add(name, to: &own, owner: owner)
            }
        }
        replacements = [own, shared]
    }

    /// Renames the files into place.
    mutating func finish() throws(CommandFailure) {
        try RestoreCommand.writing { () throws(FileError) in
            for index in replacements.indices { try replacements[index].finish() }
        }
    }

    /// Makes the folder of further files as the package does: the daemon may write there, for users of the dashboard.
    private func makeFragmentFolder(_ daemon: FileAccount) throws(CommandFailure) {
        guard geteuid() == 0, daemon.user != 0 else { return }
        let path = file.fragmentFolder
        try RestoreCommand.writing { () throws(FileError) in
            try FileReplacement.makeFolder(path.parentFolder)
            guard unsafe mkdir(path, 0o700) == 0 else {
                if errno == EEXIST { return }
                throw FileError(errno, path)
            }
            guard unsafe lchown(path, 0, daemon.group) == 0, unsafe chmod(path, 0o770) == 0 else {
                throw FileError(errno, path)
            }
        }
    }

    private func add(
        _ name: String,
        to replacement: inout FileReplacement,
        owner: FileAccount
    ) throws(CommandFailure) {
        let staged = folder.file("\(BackupPlan.configuration)/\(name)")
        var status = stat()
        let isThere = unsafe lstat(staged, &status) == 0
        guard isThere, let data = FileManager.default.contents(atPath: staged) else {
            throw CommandFailure(.inputOutput, "gattherd restore: cannot read \(staged)")
        }
        let mode = status.st_mode & 0o755 | (geteuid() == 0 ? 0o640 : 0o600)
        try RestoreCommand.writing { () throws(FileError) in
            try replacement.add(place(of: name), Array(data), owner: owner, mode: mode)
        }
    }

    /// The path of a file of the configuration, by its name in the archive's folder.
    private func place(of name: String) -> String {
        guard BackupPlan.configuration + "/" + name != manifest.main else { return file.path }
        return file.path.parentFolder + "/" + name
    }
}
