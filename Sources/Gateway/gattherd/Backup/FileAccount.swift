import CLinux
import GattherdGateway
import Glibc

/// The user and group of the daemon.
struct FileAccount: Hashable {
    let user: uid_t
    let group: gid_t
    /// Further groups, which may be the reason why a file can be read.
    var otherGroups: [gid_t] = []

    static var current: Self { Self(user: geteuid(), group: getegid()) }

    /// The account of the service that uses a configuration, else the owner of the folder of history, else this user.
    static func daemon(
        of file: ConfigurationFile,
        stateFolder: String,
        unit: ServiceUnit? = .installed()
    ) -> FileAccount {
        if let unit, unit.uses(file), let account = ServiceAccount(unit) {
            return FileAccount(user: account.id, group: account.mainGroup, otherGroups: account.groups.sorted())
        }
        return owner(of: stateFolder) ?? current
    }

    /// The owner of a folder; `nil` without such a folder.
    static func owner(of folder: String) -> FileAccount? {
        var status = stat()
        guard unsafe stat(folder, &status) == 0 else { return nil }
        return FileAccount(user: status.st_uid, group: status.st_gid)
    }

    /// Runs `body` with the rights of the account, if this is root.
    ///
    /// In a folder of the account, links then lead nowhere that the account may not go. The rights are the process's:
    /// `body` must not suspend.
    func run<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        guard geteuid() == 0, user != 0 else { return try body() }
        let groups = Self.supplementaryGroups
        let own = [group] + otherGroups
        guard unsafe setgroups(own.count, own) == 0, setegid(group) == 0, seteuid(user) == 0 else { _exit(71) }
        defer {
            guard seteuid(0) == 0, setegid(0) == 0, unsafe setgroups(groups.count, groups) == 0 else { _exit(71) }
        }
        return try body()
    }

    /// Returns the first line of a file with a secret, read with the rights of the account.
    func firstLine(of path: String) -> String? { run { SecretFile(path: path).firstLine } }

    private static var supplementaryGroups: [gid_t] {
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        let count = unsafe getgroups(Int32(groups.count), &groups)
        return Array(groups.prefix(Int(max(0, count))))
    }
}
