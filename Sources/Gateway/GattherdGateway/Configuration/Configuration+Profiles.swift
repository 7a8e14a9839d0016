import FoundationEssentials
package import GattherdConfig
import GattherdGATT
import GattherdModel
package import GattherdProfiles
import GattherdYAML

extension Configuration {
    package var hasNothingToConnect: Bool { devices.isEmpty && enrol.isEmpty }

    /// Returns the next step if the configuration has neither devices nor rules.
    package func emptinessAdvice(_ file: ConfigurationFile) -> String? {
        guard hasNothingToConnect else { return nil }
        return "run 'gattherd scan', then 'gattherd add ADDRESS'; or name devices in \(file.path) under 'devices', "
            + "then run 'gattherd reload'"
    }

    /// The path of the control socket.
    package var controlSocketPath: String {
        guard let folder = ProcessInfo.processInfo.environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first else {
            return history.path.value + ".sock"
        }
        return folder + "/gattherd.sock"
    }

    /// Loads the profiles of the configured folders, else of the installed ones.
    ///
    /// - Parameters:
    ///   - account: The account whose trust the files need.
    ///   - keepsTests: False for the daemon.
    /// - Returns: The profiles, and those that were refused.
    /// - Throws: ``ConfigErrors`` with the place of a path that does not exist.
    package func loadProfiles(
        for account: ProfileAccount = .current,
        keepsTests: Bool = true
    ) throws(ConfigErrors) -> ProfileRegistry {
        guard let paths = profiles.paths else { return InstalledProfiles.load(for: account, keepsTests: keepsTests) }
        var errors: [ConfigError] = []
        for path in paths where !FileManager.default.fileExists(atPath: path.value) {
            let problem = ConfigProblem.profile(
                "there is no folder or file '\(path.value)'; create it or correct the path"
            )
            errors.append(path.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: path.value))
        }
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        do throws(ProfilePathError) {
            return try ProfileRegistry.load(paths: paths.map(\.value), for: account, keepsTests: keepsTests)
        } catch {
            throw ConfigErrors([ConfigError(.profile(error.description), file: error.path)])
        }
    }

    /// The maximum number of mismatches; a generated file may repeat a mistake in each of its values.
    private static let maximumMismatches = 1000

    /// Returns the names in the configuration that no profile has; those in alerts are warnings.
    package func mismatches(with registry: ProfileRegistry) -> [ConfigError] {
        let known = registry.profiles.map(\.name)
        let named = devices.filter { $0.rule == nil }
        let lists = named.map(\.profiles) + enrol.map(\.profiles)
        let wrong = lists.flatMap { $0 ?? [] }.filter { !known.contains($0.value) }
        // The others would be left out below.
        let unknown = wrong.prefix(Self.maximumMismatches + 1).map { name in
            let nearest = Spelling.nearest(to: name.value, among: known)
            let problem = ConfigProblem.unknownProfile(name.value, nearest: nearest, known: known)
            return name.place.map { ConfigError(problem, at: $0) } ?? ConfigError(problem, file: "devices")
        }
        let made = enrol.map { $0.device(named: "", BluetoothAddress(value: 0)) }
        let listening = (named + made).flatMap { $0.listeningFindings(with: registry) }
        let options = (named + made).flatMap { $0.optionFindings(with: registry) }
        let all =
            unknown + named.flatMap { $0.mismatches(with: registry) } + listening + options
            + alertFindings(with: registry)
        guard all.count > Self.maximumMismatches else { return all }
        // Warnings must not hide an error, which refuses the configuration.
        let errors = all.filter { $0.severity == .error }
        return Array((errors + all.filter { $0.severity != .error }).prefix(Self.maximumMismatches))
    }
}

extension Configuration {
    /// Returns warnings about alerts whose metric no profile has.
    private func alertFindings(with registry: ProfileRegistry) -> [ConfigError] {
        let known = Set(registry.profiles.flatMap(\.recordedStreams).flatMap(\.metrics))
        let words = known.sorted()
        let unknown = alertMetrics.filter { $0.place != nil && !known.isEmpty && !known.contains($0.value) }
        // The others would be left out of all mismatches.
        return unknown.prefix(Self.maximumMismatches + 1).compactMap { metric in
            guard let place = metric.place else { return nil }
            let nearest = Spelling.nearest(to: metric.value, among: words)
            return ConfigError(.unknownMetric(metric.value, nearest: nearest), at: place, severity: .warning)
        }
    }
}

extension Profile {
    /// The streams with the names of their metrics; those of advertisements have the signal strength too.
    fileprivate var recordedStreams: [(name: String, metrics: Set<String>)] {
        let own = isForAdvertisements ? [MetricDescriptor.signalStrength.name] : []
        return streams.map { ($0.name, Set($0.metrics.map(\.name) + own)) }
    }
}

extension DeviceSettings {
    /// Returns the streams, metrics and controls that no profile of the device has.
    fileprivate func mismatches(with registry: ProfileRegistry) -> [ConfigError] {
        guard controls != nil || publish != DevicePublishSettings() || !silence.streams.isEmpty else { return [] }
        let profiles = registry.profiles.filter { profile in
            self.profiles?.contains { $0.value == profile.name } ?? true
        }
        let names = Set(profiles.flatMap(\.controls).map(\.name))
        let unknown = (controls ?? []).filter { !names.contains($0.value) }
        let isOpen = self.profiles == nil
        return publish.mismatches(with: profiles, isOpen) + silence.mismatches(with: profiles, isOpen)
            + unknown.map { ConfigError(unknown: "control", $0, names) }
    }
}

extension SilenceSettings {
    /// Returns the streams that none of `profiles` has; if the device `isOpen`, it may describe its values itself.
    fileprivate func mismatches(with profiles: [any Profile], _ isOpen: Bool) -> [ConfigError] {
        let names = Set(profiles.flatMap(\.streams).map(\.name))
        let unknown = streams.keys.filter { !names.contains(DevicePublishSettings.stream($0.value, of: names)) }
        return unknown.map { ConfigError(unknown: "stream", $0, names, isOpen) }
    }
}

extension DevicePublishSettings {
    /// Returns the streams and metrics that none of `profiles` has; an `isOpen` device may describe its values itself.
    fileprivate func mismatches(with profiles: [any Profile], _ isOpen: Bool) -> [ConfigError] {
        let all = profiles.flatMap(\.recordedStreams)
        let names = Set(all.map(\.name))
        let unknown = streams.keys.filter { !names.contains(Self.stream($0.value, of: names)) }.map {
            ConfigError(unknown: "stream", $0, names, isOpen)
        }
        let sections =
            [(self.all, all, isOpen)]
            + streams.map { stream, settings in
                (settings, all.filter { $0.name == Self.stream(stream.value, of: names) }, false)
            }
        return unknown
            + sections.flatMap { settings, streams, isOpen in
                let metrics = Set(streams.flatMap(\.metrics))
                return settings.deadbands.keys.filter { !metrics.contains($0.value) && !metrics.isEmpty }
                    .map { ConfigError(unknown: "metric", $0, metrics, isOpen) }
            }
    }

    /// Returns the stream of `name`; further instances of a stream end in a number.
    fileprivate static func stream(_ name: String, of names: Set<String>) -> String {
        guard !names.contains(name), let end = name.lastIndex(of: "_") else { return name }
        let number = Int(name[name.index(after: end)...]) ?? 0
        return number > 1 ? String(name[..<end]) : name
    }
}

extension ConfigError {
    /// Creates the finding about a name that is not among `names`.
    ///
    /// If the device `isOpen`, a name that it may give itself is a warning.
    fileprivate init(unknown what: String, _ name: Located<String>, _ names: Set<String>, _ isOpen: Bool = false) {
        let known = names.sorted()
        let nearest = Spelling.nearest(to: name.value, among: known)
        guard isOpen, PresentationProfile.canName(name.value) else {
            self.init(.unknownName(name.value, what: what, nearest: nearest, known: known), about: name)
            return
        }
        self.init(.undescribedName(name.value, what: what, nearest: nearest), about: name, severity: .warning)
    }
}

/// The profiles of the package.
package enum InstalledProfiles {
    /// The folder of the user's own profiles.
    package static let userFolder = "/etc/gattherd/profiles"

    /// The folders of the installed profiles, or of those that were built beside the program.
    ///
    /// Profiles in `/etc/gattherd/profiles` take precedence over the packaged ones in `../lib/gattherd/profiles`.
    package static var folders: [String] {
        let program = URL(filePath: CommandLine.arguments[0])
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? program.path
        let folder = URL(filePath: own).deletingLastPathComponent()
        let installed = folder.deletingLastPathComponent().appending(path: "lib/gattherd/profiles").path
        let candidates = [userFolder, installed]
        return candidates.filter { FileManager.default.fileExists(atPath: $0) } + built(in: folder)
    }

    /// Loads the profiles of ``folders``; a folder that cannot be read is among the refusals.
    package static func load(for account: ProfileAccount = .current, keepsTests: Bool = true) -> ProfileRegistry {
        ProfileRegistry.load(readable: folders, for: account, keepsTests: keepsTests)
    }

    /// Loads the profiles of a configuration for a command that does not need the refused ones.
    package static func load(_ configuration: Configuration?) -> ProfileRegistry {
        guard let paths = configuration?.profiles.paths else { return load() }
        return ProfileRegistry.load(readable: paths.map(\.value), for: .current)
    }

    /// The libraries beside a program in a build folder, and the declarative profiles of its package.
    private static func built(in folder: URL) -> [String] {
        var package = folder
        for _ in 0..<3 { package.deleteLastPathComponent() }
        let standard = package.appending(path: "Plugins/Standard").path
        guard FileManager.default.fileExists(atPath: standard) else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let libraries = names.filter { $0.hasPrefix("lib") && $0.hasSuffix(".so") }.sorted()
        return libraries.map { folder.appending(path: $0).path } + [standard]
    }
}

extension ProfileRefusal {
    /// The reason and the remedy.
    package var advice: String { remedy.map { "\(reason). \($0)" } ?? reason }
}
