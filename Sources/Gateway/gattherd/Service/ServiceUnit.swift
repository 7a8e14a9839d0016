import FoundationEssentials
import GattherdGateway

/// The settings of the daemon's systemd unit that decide which files the service can use.
struct ServiceUnit: Hashable {
    static let name = "gattherd.service"
    /// The folders of units; a file hides files of its name in later folders.
    static let folders = [
        "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ]

    let user: String
    /// The service's group; `nil`: that of its user.
    let group: String?
    let supplementaryGroups: [String]
    let configuration: String
    /// The folders that systemd creates for the user.
    let stateFolders: [String]
    /// The only writable folders; `nil` if all are.
    let writableFolders: [String]?
    /// The folders that the service does not see, with the setting that hides them.
    let hiddenFolders: [String: String]

    /// Reads the unit's file and its drop-ins, in that order.
    init(_ texts: [String]) {
        var settings = UnitSettings()
        for text in texts { settings.add(text) }
        user = settings["User"].last ?? "root"
        group = settings["Group"].last
        supplementaryGroups = settings.words("SupplementaryGroups")
        let states = settings.words("StateDirectory").map { "/var/lib/" + $0 }
        stateFolders = states
        configuration = Self.configuration(settings.words("ExecStart")) ?? ConfigurationFile.standardPath
        let others = settings.words("ReadWritePaths").map { String($0.drop { "-+".contains($0) }) }
        writableFolders = settings["ProtectSystem"].last == "strict" ? states + others : nil
        var hidden: [String: String] = [:]
        if settings.isOn("ProtectHome") || settings["ProtectHome"].last == "tmpfs" {
            for folder in ["/home", "/root", "/run/user"] { hidden[folder] = "ProtectHome=" }
        }
        if settings.isOn("PrivateTmp") {
            for folder in ["/tmp", "/var/tmp"] { hidden[folder] = "PrivateTmp=" }
        }
        hiddenFolders = hidden
    }

    /// Returns the installed unit, if there is one.
    static func installed(in folders: [String] = Self.folders) -> ServiceUnit? {
        guard let main = folders.lazy.compactMap({ text($0 + "/" + name) }).first else { return nil }
        var dropIns: [String: String] = [:]
        for folder in folders.reversed() {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder + "/\(name).d")) ?? []
            for file in names where file.hasSuffix(".conf") { dropIns[file] = folder + "/\(name).d/" + file }
        }
        return ServiceUnit([main] + dropIns.sorted { $0.key < $1.key }.compactMap { text($0.value) })
    }

    /// True if the service reads this configuration.
    func uses(_ file: ConfigurationFile) -> Bool { Self.real(configuration) == Self.real(file.path) }

    private static func real(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path }

    private static func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func configuration(_ command: [String]) -> String? {
        guard let index = command.lastIndex(of: "--config"), command.indices.contains(index + 1) else {
            return command.last { $0.hasPrefix("--config=") }.map { String($0.dropFirst("--config=".count)) }
        }
        return command[index + 1]
    }
}

/// The values of a unit's keys in the order of the text; an empty value clears those before it.
private struct UnitSettings {
    private var values: [String: [String]] = [:]

    subscript(key: String) -> [String] { values[key] ?? [] }

    func words(_ key: String) -> [String] {
        self[key].flatMap { $0.split { $0 == " " || $0 == "\t" } }.map { String($0) }
    }

    func isOn(_ key: String) -> Bool {
        self[key].last.map { ["yes", "true", "1", "on"].contains($0) } ?? false
    }

    mutating func add(_ text: String) {
        let joined = text.replacing("\\\n", with: " ")
        for line in joined.split(whereSeparator: \.isNewline) {
            let line = line.drop { $0 == " " || $0 == "\t" }
            guard let first = line.first, first != "#", first != ";", let equals = line.firstIndex(of: "=") else {
                continue
            }
            let key = String(line[..<equals].split { $0 == " " }.first ?? "")
            let value = line[line.index(after: equals)...].drop { $0 == " " }
            if value.isEmpty { values[key] = [] } else { values[key, default: []].append(String(value)) }
        }
    }
}
