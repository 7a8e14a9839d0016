import FoundationEssentials
import GattherdConfig
import GattherdGateway

/// The files of a configuration as the service sees them: with its user's rights, and behind its unit's walls.
struct ServiceAccess {
    private let unit: ServiceUnit
    private let account: ServiceAccount
    private let file: ConfigurationFile

    /// `nil` when the service does not use this configuration, or runs as root.
    init?(_ file: ConfigurationFile, unit: ServiceUnit? = .installed()) {
        guard let unit, Self.real(unit.configuration) == Self.real(file.path), let account = ServiceAccount(unit) else {
            return nil
        }
        self.init(file, unit: unit, account: account)
    }

    init(_ file: ConfigurationFile, unit: ServiceUnit, account: ServiceAccount) {
        (self.file, self.unit, self.account) = (file, unit, account)
    }

    /// The reason why the service cannot use a file, for each file that it cannot use.
    func findings(_ configuration: Configuration) -> [ConfigError] {
        let own = file.paths.compactMap { path in
            trouble(reading: path).map { ConfigError(.file($0), file: path) }
        }
        let named = configuration.namedFiles.compactMap { file in
            trouble(reading: file.value).map { ConfigError(.file($0), about: file) }
        }
        return own + named + history(configuration.history.path)
    }

    private func trouble(reading path: String) -> String? {
        if let hidden = hidingSetting(path) { return hidden }
        return account.obstacle(to: .read, path).map { words($0, "read") }
    }

    private func history(_ path: Located<String>) -> [ConfigError] {
        let folder = path.value.lastIndex(of: "/").map { String(path.value[..<$0]) } ?? "."
        guard !unit.stateFolders.contains(where: { Self.contains($0, path.value) }) else { return [] }
        if let hidden = hidingSetting(path.value) { return [ConfigError(.file(hidden), about: path)] }
        if let writable = unit.writableFolders, !writable.contains(where: { Self.contains($0, path.value) }) {
            let advice = "run: systemctl edit gattherd, and add: [Service] ReadWritePaths=\(folder)"
            let words = "the service cannot write '\(folder)' (ProtectSystem= in its unit); \(advice)"
            return [ConfigError(.file(words), about: path)]
        }
        let obstacle = account.obstacle(to: .create, folder) ?? account.obstacle(to: .readAndWrite, path.value)
        return obstacle.map { [ConfigError(.file(words($0, "write")), about: path)] } ?? []
    }

    private func hidingSetting(_ path: String) -> String? {
        guard let (_, setting) = unit.hiddenFolders.first(where: { Self.contains($0.key, path) }) else { return nil }
        return "the service does not see '\(path)' (\(setting) in its unit); move it, for example to /etc/gattherd"
    }

    private func words(_ obstacle: ServiceAccount.Obstacle, _ verb: String) -> String {
        let path = obstacle.path
        let start = "user \(account.user), as which the service runs, may not"
        if obstacle.isFolder, verb == "read" {
            return "\(start) enter '\(path)'; move the file to /etc/gattherd, or run: chmod o+x '\(path)'"
        }
        guard verb == "read" else { return "\(start) write '\(path)'; run: chown \(account.user) '\(path)'" }
        return "\(start) read '\(path)'; run: chgrp \(account.group) '\(path)' && chmod g+r '\(path)'"
    }

    private static func contains(_ folder: String, _ path: String) -> Bool {
        path == folder || path.hasPrefix(folder + "/")
    }

    private static func real(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path }
}

extension Configuration {
    /// Everything that the daemon reads besides the configuration itself.
    fileprivate var namedFiles: [Located<String>] {
        let tls = mqtt.map { $0.broker.usesTLS ? [$0.tls.ca, $0.tls.certificate, $0.tls.key] : [] } ?? []
        let secrets = [mqtt?.passwordFile, http?.tokenFile] + devices.flatMap { [$0.pinFile, $0.bindKeyFile] }
        return (tls + secrets).compactMap(\.self) + (profiles.paths ?? [])
    }
}
