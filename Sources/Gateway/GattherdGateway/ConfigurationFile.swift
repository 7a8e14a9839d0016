import FoundationEssentials
package import GattherdConfig
import GattherdGATT
import GattherdModel
package import GattherdProfiles
import Glibc

/// A configuration as it lies on the disk: one file, and `gattherd.d/*.yaml` beside it.
package struct ConfigurationFile: Sendable {
    package static let standardPath = "/etc/gattherd/gattherd.yaml"

    package let path: String

    package init(_ path: String?) {
        self.path = path ?? Self.standardPath
    }

    package static var isStandardThere: Bool { FileManager.default.fileExists(atPath: standardPath) }

    /// Reads and parses all files.
    ///
    /// - Throws: ``ConfigErrors``, also when a file cannot be read.
    package func parsed() throws(ConfigErrors) -> Configuration {
        let (configuration, errors) = parsedLeniently()
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        return configuration
    }

    /// Reads and parses all files as far as they are right, for commands that need only little of them.
    package func parsedLeniently() -> (configuration: Configuration, errors: [ConfigError]) {
        var sources: [ConfigSource] = []
        var unreadable: [ConfigError] = []
        for path in paths {
            if let data = FileManager.default.contents(atPath: path) {
                sources.append(ConfigSource(name: path, octets: Array(data)))
            } else {
                let reason = unsafe access(path, R_OK) == 0 ? "it is no file" : String(cString: strerror(errno))
                unreadable.append(ConfigError(.unreadable(reason: reason), file: path))
            }
        }
        // Without the main file another one would take its place, and its folder.
        let isMainThere = sources.first?.name == path
        let known = isMainThere ? sources : [ConfigSource(name: path, octets: [])]
        let (configuration, errors) = Configuration.parseLeniently(known, in: Self.surroundings)
        return (configuration, unreadable.isEmpty ? errors : unreadable)
    }

    /// The main file, then the others.
    package var paths: [String] { [path] + fragments }

    private var fragments: [String] {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder + "gattherd.d")) ?? []
        return names.filter { $0.hasSuffix(".yaml") && !$0.hasPrefix(".") }.sorted()
            .map { folder + "gattherd.d/" + $0 }
    }

    private static var surroundings: ConfigEnvironment {
        var name = [CChar](repeating: 0, count: 256)
        let code = unsafe gethostname(&name, name.count - 1)
        let host =
            code == 0 ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        return ConfigEnvironment(variables: ProcessInfo.processInfo.environment, hostName: host)
    }
}

extension Configuration {
    package var hasNothingToConnect: Bool { devices.isEmpty && enrol.isEmpty }

    /// The next step for a person whose configuration names nothing to connect; `nil` when it does.
    package func emptinessAdvice(_ file: ConfigurationFile) -> String? {
        guard hasNothingToConnect else { return nil }
        let words = "no devices: nothing is connected; run 'gattherd scan', name what you want in \(file.path)"
        return "\(words) under 'devices', then run 'gattherd reload'"
    }

    /// Where the daemon listens to the command line.
    package var controlSocketPath: String {
        guard let folder = ProcessInfo.processInfo.environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first else {
            return history.path.value + ".sock"
        }
        return folder + "/gattherd.sock"
    }

    /// Loads the profiles of the configured, else of the installed, folders.
    ///
    /// - Throws: ``ConfigErrors`` with the place of a path that leads nowhere.
    package func loadProfiles() throws(ConfigErrors) -> ProfileRegistry {
        guard let paths = profiles.paths else { return InstalledProfiles.load() }
        var errors: [ConfigError] = []
        for path in paths where !FileManager.default.fileExists(atPath: path.value) {
            let problem = ConfigProblem.profile(
                "there is no folder or file '\(path.value)'; create it or correct the path"
            )
            errors.append(path.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: path.value))
        }
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        do throws(ProfilePathError) {
            return try ProfileRegistry.load(paths: paths.map(\.value))
        } catch {
            throw ConfigErrors([ConfigError(.profile(error.description), file: error.path)])
        }
    }

    /// What is wrong between the devices' lists of profiles and the profiles that there are.
    package func mismatches(with registry: ProfileRegistry) -> [ConfigError] {
        let known = registry.profiles.map(\.name)
        let named = devices.filter { $0.rule == nil }
        let lists = named.map(\.profiles) + enrol.map(\.profiles)
        let unknown = lists.flatMap { $0 ?? [] }.filter { !known.contains($0.value) }.map { name in
            let nearest = Spelling.nearest(to: name.value, among: known)
            let problem = ConfigProblem.unknownProfile(name.value, nearest: nearest, known: known)
            return name.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: "devices")
        }
        let made = enrol.map { $0.device(named: "", BluetoothAddress(value: 0)) }
        let listening = (named + made).flatMap { $0.listeningFindings(with: registry) }
        let options = (named + made).flatMap { $0.optionFindings(with: registry) }
        return unknown + named.flatMap { $0.mismatches(with: registry) } + listening + options
    }
}

extension DeviceSettings {
    /// Streams, metrics and controls that no profile of the device has: what is said of them would never count.
    fileprivate func mismatches(with registry: ProfileRegistry) -> [ConfigError] {
        guard controls != nil || publish != DevicePublishSettings() || !silence.streams.isEmpty else { return [] }
        let profiles = registry.profiles.filter { profile in
            self.profiles?.contains { $0.value == profile.name } ?? true
        }
        let names = Set(profiles.flatMap(\.controls).map(\.name))
        let unknown = (controls ?? []).filter { !names.contains($0.value) }
        return publish.mismatches(with: profiles) + silence.mismatches(with: profiles)
            + unknown.map { ConfigError(unknown: "control", $0, names) }
    }
}

extension SilenceSettings {
    fileprivate func mismatches(with profiles: [any Profile]) -> [ConfigError] {
        let names = Set(profiles.flatMap(\.streams).map(\.name))
        let unknown = streams.keys.filter { !names.contains(DevicePublishSettings.stream($0.value, of: names)) }
        return unknown.map { ConfigError(unknown: "stream", $0, names) }
    }
}

extension DevicePublishSettings {
    fileprivate func mismatches(with profiles: [any Profile]) -> [ConfigError] {
        let all = profiles.flatMap(\.streams)
        let names = Set(all.map(\.name))
        let unknown = streams.keys.filter { !names.contains(Self.stream($0.value, of: names)) }.map {
            ConfigError(unknown: "stream", $0, names)
        }
        let sections =
            [(self.all, all)]
            + streams.map { stream, settings in
                (settings, all.filter { $0.name == Self.stream(stream.value, of: names) })
            }
        return unknown
            + sections.flatMap { settings, streams in
                let metrics = Set(streams.flatMap(\.metrics).map(\.name))
                return settings.deadbands.keys.filter { !metrics.contains($0.value) && !metrics.isEmpty }
                    .map { ConfigError(unknown: "metric", $0, metrics) }
            }
    }

    /// The profile's stream that `name` means: where a device has several of one, the others end in a number.
    fileprivate static func stream(_ name: String, of names: Set<String>) -> String {
        guard !names.contains(name), let end = name.lastIndex(of: "_") else { return name }
        let number = Int(name[name.index(after: end)...]) ?? 0
        return number > 1 ? String(name[..<end]) : name
    }
}

extension ConfigError {
    fileprivate init(unknown what: String, _ name: Located<String>, _ names: Set<String>) {
        let known = names.sorted()
        let nearest = Spelling.nearest(to: name.value, among: known)
        let problem = ConfigProblem.unknownName(name.value, what: what, nearest: nearest, known: known)
        self = name.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: "devices")
    }
}

/// The profiles that come with gattherd.
package enum InstalledProfiles {
    /// Those beside the program (as built), or in `/etc/gattherd/profiles` and `../lib/gattherd/profiles` (as installed);
    /// what people put into the first goes before what came with gattherd.
    package static var folders: [String] {
        let program = URL(filePath: CommandLine.arguments[0])
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? program.path
        let folder = URL(filePath: own).deletingLastPathComponent()
        let installed = folder.deletingLastPathComponent().appending(path: "lib/gattherd/profiles").path
        let candidates = ["/etc/gattherd/profiles", installed]
        return candidates.filter { FileManager.default.fileExists(atPath: $0) } + built(in: folder)
    }

    package static func load() -> ProfileRegistry {
        (try? ProfileRegistry.load(paths: folders)) ?? ProfileRegistry()
    }

    /// In a build folder: the libraries beside the program, and the package's declarative profiles.
    private static func built(in folder: URL) -> [String] {
        let libraries = ["libHeartRate.so", "libNumberService.so"].map { folder.appending(path: $0).path }
        var package = folder
        for _ in 0..<3 { package.deleteLastPathComponent() }
        let standard = package.appending(path: "Plugins/Standard").path
        return (libraries + [standard]).filter { FileManager.default.fileExists(atPath: $0) }
    }
}

extension ProfileRefusal {
    /// The reason, and what to do about it.
    package var advice: String { remedy.map { "\(reason). \($0)" } ?? reason }
}
