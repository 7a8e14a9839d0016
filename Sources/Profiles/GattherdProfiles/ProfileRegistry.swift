package import GattherdGATT
package import GattherdModel
import GattherdYAML
import Glibc

/// The profiles of a configuration, and the refused ones.
package struct ProfileRegistry: Sendable {
    /// The profiles in order: by path as configured, then by file name.
    package let profiles: [any Profile]
    /// The refused files and folders; the other profiles work without them.
    package let refusals: [ProfileRefusal]

    package init(profiles: [any Profile] = [], refusals: [ProfileRefusal] = []) {
        self.profiles = profiles
        self.refusals = refusals
    }

    /// The profile named `name`.
    package subscript(name: String) -> (any Profile)? {
        profiles.first { $0.name == name }
    }

    /// Returns true if the profile named `name` takes bind keys of 16 bytes only, as native ones do.
    package func needsCompleteKey(_ name: String) -> Bool { self[name].map(ProfileTools.needsCompleteKey) ?? false }

    /// Returns the profiles that match a device with these services.
    package func matching(_ services: some Sequence<BluetoothUUID>) -> [any Profile] {
        let services = Set(services)
        return profiles.filter { !$0.isOptIn && !services.isDisjoint(with: $0.services) }
    }

    /// Returns the profile for a peripheral, and its model if one of the profiles knows it.
    ///
    /// If several models fit, the model with the most identifying bytes is used. Without a model, profiles that decode
    /// the advertisement take precedence over those that match an advertised service.
    package func identify(_ traits: AdvertisedTraits) -> Identification? {
        var best: (weight: Int, profile: any Profile, model: ModelDescriptor)?
        for profile in profiles {
            for model in profile.models {
                guard let weight = model.weight(in: traits), weight > best?.weight ?? -1 else { continue }
                best = (weight, profile, model)
            }
        }
        if let best { return Identification(best.profile, best.model) }
        return (profiles.first { $0.decodes(traits) } ?? matching(traits.services).first).map { Identification($0) }
    }

    /// Returns the profiles that may serve a peripheral: that of its model alone, or else all that decode its
    /// advertisements, and the first that matches an advertised service.
    package func candidates(_ traits: AdvertisedTraits) -> [Identification] {
        guard let first = identify(traits) else { return [] }
        if first.model != nil { return [first] }
        let decoding = profiles.filter { $0.decodes(traits) }
        return (decoding + matching(traits.services).prefix(1)).map { Identification($0) }
    }

    /// Loads the files of `paths`, and every `*.so` and `*.yaml` of the folders.
    ///
    /// Only one thread at a time may call it. A native profile stays loaded until the process ends, even
    /// if its file changes.
    ///
    /// - Throws: ``ProfilePathError`` for the first path that does not exist or cannot be read.
    package static func load(paths: [String]) throws(ProfilePathError) -> ProfileRegistry {
        try load(paths: paths, for: .current)
    }

    /// Loads profiles as ``load(paths:)`` does, but trusts only the files that `account` may trust.
    ///
    /// - Parameters:
    ///   - paths: Files and folders.
    ///   - account: The account whose trust the files need.
    ///   - keepsTests: False for the daemon, which neither tests nor explains a profile and saves memory.
    /// - Returns: The profiles, and those that were refused.
    /// - Throws: ``ProfilePathError`` for the first path that does not exist or cannot be read.
    package static func load(
        paths: [String],
        for account: ProfileAccount,
        keepsTests: Bool = true
    ) throws(ProfilePathError) -> ProfileRegistry {
        var loader = ProfileLoader(for: account, keepsTests: keepsTests)
        for path in paths { try loader.add(path: path) }
        return ProfileRegistry(profiles: loader.profiles, refusals: loader.refusals)
    }

    /// Loads profiles as ``load(paths:for:keepsTests:)`` does; each path that cannot be read becomes a refusal.
    package static func load(
        readable paths: [String],
        for account: ProfileAccount,
        keepsTests: Bool = true
    ) -> ProfileRegistry {
        var loader = ProfileLoader(for: account, keepsTests: keepsTests)
        for path in paths { loader.add(optional: path) }
        return ProfileRegistry(profiles: loader.profiles, refusals: loader.refusals)
    }
}

/// Loads the profiles of the configured paths.
struct ProfileLoader {
    /// The maximum size of a YAML file, in bytes.
    private static let longestText = 1 << 20

    private let account: ProfileAccount
    private let keepsTests: Bool
    private(set) var profiles: [any TestedProfile] = []
    private(set) var refusals: [ProfileRefusal] = []
    private var seen: Set<String> = []

    init(for account: ProfileAccount, keepsTests: Bool) {
        (self.account, self.keepsTests) = (account, keepsTests)
    }

    /// Adds a path that may be unreadable, which is then a refusal.
    mutating func add(optional path: String) {
        do throws(ProfilePathError) {
            try add(path: path)
        } catch {
            let remedy = unsafe access(path, F_OK) == 0 ? "Run: chmod o+rx '\(path)'" : nil
            refusals.append(ProfileRefusal(path: path, reason: "it cannot be read: \(error.reason)", remedy: remedy))
        }
    }

    /// - Throws: ``ProfilePathError`` if the path does not exist or cannot be read.
    mutating func add(path: String) throws(ProfilePathError) {
        do throws(FileFault) {
            let found = try FileTrust(path)
            guard found.isDirectory else { return add(file: path) }
            let names = try FolderReader.names(in: path)
            if let objection = found.objection(for: account) { return refusals.append(objection) }
            for name in names where Self.isProfile(name) { add(file: "\(path)/\(name)") }
        } catch {
            throw ProfilePathError(path: path, reason: error.description)
        }
    }

    private static func isProfile(_ name: String) -> Bool {
        !name.hasPrefix(".") && (name.hasSuffix(".so") || name.hasSuffix(".yaml"))
    }

    private mutating func add(file path: String) {
        do throws(FileFault) {
            let file = try FileTrust(path)
            guard seen.insert(file.path).inserted else { return }
            let folder = try FileTrust(file.folder)
            if let objection = file.objection(for: account) ?? folder.objection(for: account) {
                return refusals.append(objection)
            }
            if path.hasSuffix(".so"), let objection = objectionOfRoot(file, folder) {
                return refusals.append(objection)
            }
            guard file.isRegular else {
                return refuse(path, reason: "it is not a file", remedy: "Move it out of the folder")
            }
            load(path, file)
        } catch {
            refuse(path, reason: "it cannot be read: \(error)", remedy: error.remedy(for: path))
        }
    }

    /// The reason why a command of root must not run the code of a library that the account trusts.
    ///
    /// The account could replace the library, and its code would then have the rights of root.
    private func objectionOfRoot(_ file: FileTrust, _ folder: FileTrust) -> ProfileRefusal? {
        let current = ProfileAccount.current
        guard current.user == 0, account.user != 0 else { return nil }
        guard (file.objection(for: current) ?? folder.objection(for: current)) != nil else { return nil }
        return ProfileRefusal(
            path: file.path,
            reason: "this command runs as root, and root does not run code that user \(account.name) can change",
            remedy: "Run: chown root '\(file.path)' '\(folder.path)', or run the command as user \(account.name)"
        )
    }

    private mutating func load(_ path: String, _ file: FileTrust) {
        do throws(ProfileRefusal) {
            if path.hasSuffix(".so") {
                add(LoadedProfile(table: try NativeImage.open(file.path, size: file.size), origin: path))
            } else if path.hasSuffix(".yaml") {
                try compile(path)
            } else {
                refuse(path, reason: "its name ends neither in .so nor in .yaml", remedy: "Rename it")
            }
        } catch {
            refusals.append(error)
        }
    }

    private mutating func compile(_ path: String) throws(ProfileRefusal) {
        let octets = try text(path)
        do throws(ProfileCompiler.Failure) {
            let profile = try ProfileCompiler.compile(octets, origin: path)
            add(keepsTests ? profile : profile.forDecoding)
        } catch {
            for finding in error.findings {
                let (line, column) = (finding.position.line, finding.position.column)
                refusals.append(ProfileRefusal(path: path, line: line, column: column, reason: finding.reason))
            }
        }
    }

    private func text(_ path: String) throws(ProfileRefusal) -> [UInt8] {
        do throws(FileFault) {
            let octets = try FolderReader.octets(of: path, limit: Self.longestText)
            if octets.count <= Self.longestText { return octets }
        } catch {
            throw ProfileRefusal(path: path, reason: "it cannot be read: \(error)", remedy: error.remedy(for: path))
        }
        throw ProfileRefusal(path: path, reason: "it is longer than 1 MiB", remedy: "A profile is a few kilobytes")
    }

    private mutating func add(_ profile: some TestedProfile) {
        guard let index = profiles.firstIndex(where: { $0.name == profile.name }) else {
            return profiles.append(profile)
        }
        let first = profiles[index]
        guard !Self.isStandIn(profile) else { return profiles[index] = Self.replacing(profile, by: first) }
        guard !Self.isStandIn(first) else { return profiles[index] = Self.replacing(first, by: profile) }
        refuse(
            profile.origin,
            reason: "the name '\(profile.name)' is taken by \(first.origin)",
            remedy: "Remove one of the two, or give it another name"
        )
    }

    /// Returns the profile that replaces a stand-in; it serves the same models unless it names its own.
    private static func replacing(_ standIn: any TestedProfile, by profile: any TestedProfile) -> any TestedProfile {
        var profile = profile
        if profile.models.isEmpty { profile.models = standIn.models }
        return profile
    }

    private static func isStandIn(_ profile: any Profile) -> Bool {
        (profile as? DeclarativeProfile)?.isStandIn ?? false
    }

    private mutating func refuse(_ path: String, reason: String, remedy: String) {
        refusals.append(ProfileRefusal(path: path, reason: reason, remedy: remedy))
    }
}
