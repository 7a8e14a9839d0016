import CLinux
import GattherdGateway
import GattherdSync
import Glibc

/// The rights with which root works on the files of a configuration.
///
/// The daemon may write `gattherd.d`, so its user can put links there. Root works there with the daemon's rights, so
/// that a link cannot lead to files that the daemon may not use.
struct FolderAccess {
    private let root: String
    private let daemon: FileAccount

    /// - Parameters:
    ///   - file: The configuration.
    ///   - daemon: The account of the daemon.
    init(_ file: ConfigurationFile, _ daemon: FileAccount) {
        root = file.path.parentFolder
        self.daemon = daemon
    }

    /// True if this is root, and the daemon can change a folder, or one above it in the folder of the configuration.
    func isShared(_ folder: String) -> Bool {
        guard geteuid() == 0, daemon.user != 0 else { return false }
        var place = root
        if mayChange(place) { return true }
        for name in (folder.relative(toFolder: root) ?? "").split(separator: "/") {
            place += "/" + name
            if mayChange(place) { return true }
        }
        return false
    }

    /// Runs `body` with the rights for the files of a folder.
    func run<Value, Failure: Error>(in folder: String, _ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        try isShared(folder) ? daemon.run(body) : body()
    }

    /// True if the daemon's user can change the names in a folder.
    private func mayChange(_ folder: String) -> Bool {
        var status = stat()
        guard unsafe stat(folder, &status) == 0 else { return false }
        let isGroups = status.st_gid == daemon.group && status.st_mode & S_IWGRP != 0
        return status.st_uid == daemon.user || isGroups || status.st_mode & S_IWOTH != 0
    }
}
