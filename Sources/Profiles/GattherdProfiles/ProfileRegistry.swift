public import GattherdGATT
public import GattherdModel

/// The profiles of a configuration, and what was refused.
public struct ProfileRegistry: Sendable {
    /// In the order in which they were found: by path as configured, then by file name.
    public let profiles: [any Profile]
    /// What was found and is not used; the rest works without it.
    public let refusals: [ProfileRefusal]

    public init(profiles: [any Profile] = [], refusals: [ProfileRefusal] = []) {
        self.profiles = profiles
        self.refusals = refusals
    }

    /// The profile that configurations call `name`.
    public subscript(name: String) -> (any Profile)? {
        profiles.first { $0.name == name }
    }

    /// The profiles that a device matches by these services alone.
    public func matching(_ services: some Sequence<BluetoothUUID>) -> [any Profile] {
        let services = Set(services)
        return profiles.filter { !$0.isOptIn && !services.isDisjoint(with: $0.services) }
    }

    /// Loads every `*.so` and `*.yaml` of the folders, and the files, of `paths`.
    ///
    /// Must be called by one thread at a time. A native profile that was loaded once stays as it was, whatever
    /// becomes of its file, until the process ends.
    ///
    /// - Throws: ``ProfilePathError`` for the first path that is not there or cannot be read.
    public static func load(paths: [String]) throws(ProfilePathError) -> ProfileRegistry {
        try load(paths: paths, for: .current)
    }

    /// Loads profiles as ``load(paths:)`` does, but trusts only the files that `account` may trust.
    package static func load(
        paths: [String],
        for account: ProfileAccount
    ) throws(ProfilePathError) -> ProfileRegistry {
        var loader = ProfileLoader(for: account)
        for path in paths { try loader.add(path: path) }
        return ProfileRegistry(profiles: loader.profiles, refusals: loader.refusals)
    }

    /// Loads profiles as ``load(paths:for:)`` does; each path that cannot be read becomes a refusal.
    package static func load(readable paths: [String], for account: ProfileAccount) -> ProfileRegistry {
        var loader = ProfileLoader(for: account)
        for path in paths { loader.add(optional: path) }
        return ProfileRegistry(profiles: loader.profiles, refusals: loader.refusals)
    }
}
