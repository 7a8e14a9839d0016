import CLinux
import FoundationEssentials
import GattherdProfiles
import Glibc

/// The user of the service.
///
/// `check` and `doctor` mostly run as root, which can read everything.
struct ServiceAccount: Hashable {
    /// An access that the user needs to a file or a folder.
    enum Access: mode_t {
        case read = 4
        case enter = 1
        /// Reads the names in a folder and opens its files.
        case list = 5
        case write = 2
        case readAndWrite = 6
        case create = 3
    }

    /// The first file or folder of a path that the user may not access.
    struct Obstacle: Hashable {
        let path: String
        let isFolder: Bool
    }

    let user: String
    let group: String
    let id: uid_t
    let mainGroup: gid_t
    /// All groups of the user.
    let groups: Set<gid_t>

    /// Creates the account of a unit; `nil` for root and for a user that does not exist.
    init?(_ unit: ServiceUnit) {
        guard let entry = unsafe getpwnam(unit.user), unsafe entry.pointee.pw_uid != 0 else { return nil }
        user = unit.user
        id = unsafe entry.pointee.pw_uid
        let own = unit.group.flatMap { Self.id(ofGroup: $0) } ?? (unsafe entry.pointee.pw_gid)
        group = unit.group ?? Self.name(ofGroup: own)
        mainGroup = own
        let others = unit.supplementaryGroups.compactMap { Self.id(ofGroup: $0) }
        groups = Set([own] + others + Self.groups(of: unit.user, own))
    }

    /// - Parameters:
    ///   - user: A name for messages.
    ///   - id: The user's number.
    ///   - groups: The user's groups.
    init(user: String, id: uid_t, groups: Set<gid_t>) {
        (self.user, group, self.id, self.groups) = (user, user, id, groups)
        mainGroup = groups.first ?? id
    }

    /// The account by which the service trusts profiles.
    var profiles: ProfileAccount { ProfileAccount(user: id, group: mainGroup) }

    /// Returns the first obstacle on the path to a file, symbolic links included; `nil` if none is certain.
    func obstacle(to access: Access, _ path: String) -> Obstacle? {
        let real = unsafe realpath(path, nil)
        defer { unsafe free(real) }
        let target = unsafe real.map { unsafe String(cString: $0) }
        let ways = target == path ? [path] : [path, target].compactMap(\.self)
        return ways.lazy.compactMap { obstacle(on: $0, to: access) }.first
    }

    private func obstacle(on path: String, to access: Access) -> Obstacle? {
        for (index, place) in path.indices.filter({ path[$0] == "/" }).enumerated() {
            let folder = index == 0 && path.hasPrefix("/") ? "/" : String(path[..<place])
            if refuses(.enter, folder) { return Obstacle(path: folder, isFolder: true) }
        }
        return refuses(access, path) ? Obstacle(path: path, isFolder: access == .create || access == .list) : nil
    }

    /// True if access is certainly refused; false for missing files and for files with an access control list.
    private func refuses(_ access: Access, _ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        let shift: mode_t = status.st_uid == id ? 6 : groups.contains(status.st_gid) ? 3 : 0
        return status.st_mode >> shift & access.rawValue != access.rawValue && !hasAccessList(path)
    }

    private func hasAccessList(_ path: String) -> Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let extended = attributes?[FileAttributeKey(rawValue: "NSFileExtendedAttributes")] as? [String: Data]
        return extended?["system.posix_acl_access"] != nil
    }

    // MARK: - Groups

    private static func id(ofGroup name: String) -> gid_t? {
        unsafe getgrnam(name).map { unsafe $0.pointee.gr_gid }
    }

    private static func name(ofGroup id: gid_t) -> String {
        unsafe getgrgid(id).map { unsafe String(cString: $0.pointee.gr_name) } ?? "\(id)"
    }

    private static func groups(of user: String, _ own: gid_t) -> [gid_t] {
        var count: Int32 = 256
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard unsafe getgrouplist(user, own, &groups, &count) >= 0 else { return [] }
        return Array(groups.prefix(Int(count)))
    }
}
