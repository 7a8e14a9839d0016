public import GattherdGATT
public import GattherdModel

/// The profiles of a configuration, and the refused ones.
public struct ProfileRegistry: Sendable {
    /// The profiles in order: by path as configured, then by file name.
    public let profiles: [any Profile]
    /// The refused files and folders; the other profiles work without them.
    public let refusals: [ProfileRefusal]

    public init(profiles: [any Profile] = [], refusals: [ProfileRefusal] = []) {
        self.profiles = profiles
        self.refusals = refusals
    }

    /// The profile named `name`.
    public subscript(name: String) -> (any Profile)? {
        profiles.first { $0.name == name }
    }

    /// Returns the profiles that match a device with these services.
    public func matching(_ services: some Sequence<BluetoothUUID>) -> [any Profile] {
        let services = Set(services)
        return profiles.filter { !$0.isOptIn && !services.isDisjoint(with: $0.services) }
    }

    /// Loads the files of `paths`, and every `*.so` and `*.yaml` of the folders.
    ///
    /// Only one thread at a time may call it. A native profile stays loaded until the process ends, even
    /// if its file changes.
    ///
    /// - Throws: ``ProfilePathError`` for the first path that does not exist or cannot be read.
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
