import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdProfiles
import GattherdSync
import Glibc

/// The files of a configuration as the service sees them: with its user's rights and its unit's restrictions.
struct ServiceAccess {
    private let unit: ServiceUnit
    private let account: ServiceAccount
    private let file: ConfigurationFile

    /// Creates the view of the service; `nil` if it does not use this configuration or runs as root.
    init?(_ file: ConfigurationFile, unit: ServiceUnit? = .installed()) {
        guard let unit, unit.uses(file), let account = ServiceAccount(unit) else {
            return nil
        }
        self.init(file, unit: unit, account: account)
    }

    init(_ file: ConfigurationFile, unit: ServiceUnit, account: ServiceAccount) {
        (self.file, self.unit, self.account) = (file, unit, account)
    }

    /// The account by which the service trusts profiles.
    var profileAccount: ProfileAccount { account.profiles }

    /// The reason why the service cannot use a file or folder, for each that it cannot use.
    func findings(_ configuration: Configuration) -> [ConfigError] {
        let folder = problem(reading: file.fragmentFolder).map { ConfigError(.file($0), file: file.fragmentFolder) }
        // An inaccessible folder makes all its files inaccessible; it is reported once.
        let own = (folder == nil ? file.paths : [file.path]).compactMap { path in
            problem(reading: path).map { ConfigError(.file($0), file: path) }
        }
        let named = configuration.namedFiles.compactMap { file in
            problem(reading: file.value).map { ConfigError(.file($0), about: file) }
        }
        let profiles = configuration.profiles.paths ?? InstalledProfiles.folders.map { Located($0) }
        return own + [folder].compactMap(\.self) + named + profiles.flatMap { profileFindings($0) }
            + findings(writing: configuration.history.path)
            + configuration.destinations.flatMap { Self.isPipe($0.value) ? pipe($0) : findings(writing: $0) }
    }

    /// The findings for a profile, or for a folder and the profiles in it.
    private func profileFindings(_ path: Located<String>) -> [ConfigError] {
        if let problem = problem(reading: path.value) { return [ConfigError(.file(problem), about: path)] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path.value)) ?? []
        return names.filter { $0.hasSuffix(".so") || $0.hasSuffix(".yaml") }.sorted().compactMap { name in
            let file = path.value + "/" + name
            return problem(reading: file).map { ConfigError(.file($0), file: file) }
        }
    }

    private func problem(reading path: String) -> String? {
        if let hidden = hidingSetting(path, movingTo: "/etc/gattherd") { return hidden }
        return account.obstacle(to: Self.isFolder(path) ? .list : .read, path).map { words($0, "read") }
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder
    }

    private static func isPipe(_ path: String) -> Bool {
        var status = stat()
        return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// The findings for a named pipe; it can be written although its folder cannot.
    private func pipe(_ path: Located<String>) -> [ConfigError] {
        let hidden = hidingSetting(path.value, movingTo: "/run")
        let reason = hidden ?? account.obstacle(to: .write, path.value).map { words($0, "write") }
        return reason.map { [ConfigError(.file($0), about: path)] } ?? []
    }

    /// The findings for a file that is created if it is missing.
    private func findings(writing path: Located<String>) -> [ConfigError] {
        let folder = path.value.parentFolder
        guard !unit.stateFolders.contains(where: { Self.contains($0, path.value) }) else { return [] }
        let state = unit.stateFolders.first ?? "/var/lib/gattherd"
        if let hidden = hidingSetting(path.value, movingTo: state) {
            return [ConfigError(.file(hidden), about: path)]
        }
        if let writable = unit.writableFolders, !writable.contains(where: { Self.contains($0, path.value) }) {
            let advice = "run: systemctl edit gattherd, and add: [Service] ReadWritePaths=\(folder)"
            let words = "the service cannot write '\(folder)' (ProtectSystem= in its unit); \(advice)"
            return [ConfigError(.file(words), about: path)]
        }
        let obstacle = account.obstacle(to: .create, folder) ?? account.obstacle(to: .readAndWrite, path.value)
        return obstacle.map { [ConfigError(.file(words($0, "write")), about: path)] } ?? []
    }

    private func hidingSetting(_ path: String, movingTo folder: String) -> String? {
        guard let (_, setting) = unit.hiddenFolders.first(where: { Self.contains($0.key, path) }) else { return nil }
        return "the service does not see '\(path)' (\(setting) in its unit); move it, for example to \(folder)"
    }

    private func words(_ obstacle: ServiceAccount.Obstacle, _ verb: String) -> String {
        let path = obstacle.path
        let start = "user \(account.user), as which the service runs, may not"
        if obstacle.isFolder, verb == "read" {
            let isOurs = Self.contains("/etc/gattherd", path)
            return isOurs
                ? "\(start) list '\(path)' and open its files; run: chmod o+rx '\(path)'"
                : "\(start) enter '\(path)'; move it to /etc/gattherd, or run: chmod o+rx '\(path)'"
        }
        guard verb == "read" else { return "\(start) write '\(path)'; run: chown \(account.user) '\(path)'" }
        return "\(start) read '\(path)'; run: chgrp \(account.group) '\(path)' && chmod g+r '\(path)'"
    }

    private static func contains(_ folder: String, _ path: String) -> Bool {
        path == folder || path.hasPrefix(folder + "/")
    }
}

extension Configuration {
    /// The secrets and certificates that the configuration names.
    var namedFiles: [Located<String>] {
        let secrets = [http?.tokenFile] + devices.flatMap { [$0.pinFile, $0.bindKeyFile, $0.irkFile] }
        return outputFiles.map(\.file).filter { $0.use != .destination }.map(\.path) + secrets.compactMap(\.self)
    }

    /// The files to which outputs deliver.
    fileprivate var destinations: [Located<String>] {
        outputFiles.map(\.file).filter { $0.use == .destination }.map(\.path)
    }
}
