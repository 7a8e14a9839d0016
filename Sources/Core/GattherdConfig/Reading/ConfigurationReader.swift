import GattherdGATT
import GattherdModel

/// Reads the sections of a configuration and fills in the defaults.
///
/// An invalid value is reported and read as if it were absent, so that all errors are found at once.
struct ConfigurationReader {
    let environment: ConfigEnvironment
    let paths: PathRule
    /// The sections of outputs.
    let outputs: [any OutputSectionDefinition.Type]

    func configuration(_ top: SectionReader) -> Configuration {
        let gateway = top.value("gateway", .slug)?.value ?? Slug.from(hostName: environment.hostName)
        var configuration = Configuration(gateway: gateway, database: defaultDatabase)
        top.section("bluetooth") { configuration.bluetooth = bluetooth($0) }
        top.section("profiles") { configuration.profiles.paths = $0.list("paths", .path)?.map { paths.resolve($0) } }
        configuration.devices = DevicesReader(paths: paths).devices(top)
        checkAdapters(configuration, top)
        configuration.enrol = DevicesReader(paths: paths).rules(top)
        configuration.alerts = AlertsReader(devices: names(configuration))
            .rules(top, metrics: &configuration.alertMetrics)
        top.section("history") { history($0, &configuration.history) }
        configuration.mqtt = top.section("mqtt") { MQTTReader(gateway: gateway, paths: paths).settings($0) } ?? nil
        configuration.outputs = outputSections(top, gateway: gateway)
        configuration.http = top.section("http") { http($0) } ?? nil
        top.section("log") { configuration.log = log($0) }
        FleetReader().read(top, into: &configuration)
        top.finish()
        return configuration
    }

    /// The names of all devices; `nil` if rules can add others.
    private func names(_ configuration: Configuration) -> [String]? {
        configuration.enrol.isEmpty ? configuration.devices.map(\.name.value) : nil
    }

    private func outputSections(_ top: SectionReader, gateway: String) -> [OutputSection] {
        var (names, receivers) = ([String: ConfigPlace](), [String: ConfigPlace]())
        return outputs.flatMap { kind in
            top.oneOrMore(kind.section) { section in
                let name = outputName(section, kind.section, &names)
                let environment = OutputEnvironment(gateway: gateway, name: name, paths: paths)
                let output = OutputSection(kind, section, environment)
                checkReceiver(of: output, section, &receivers)
                return output
            }
        }
    }

    /// Reports a second output to a receiver that keeps one cursor: each would take the other's entries for its own.
    private func checkReceiver(
        of output: OutputSection?,
        _ section: SectionReader,
        _ receivers: inout [String: ConfigPlace]
    ) {
        guard let output, let receiver = output.receiver, let place = output.place else { return }
        if let first = receivers[receiver] {
            let reason = "the section at \(first) delivers to this receiver already; remove one of them"
            section.report(.conflict(reason), at: place)
        }
        receivers[receiver] = receivers[receiver] ?? place
    }

    /// Returns the name of an output, which no other output may have.
    private func outputName(_ section: SectionReader, _ kind: String, _ names: inout [String: ConfigPlace]) -> String {
        let given = section.value("name", .slug)
        let name = given?.value ?? kind
        guard let place = given?.place ?? section.place else { return name }
        if ["mqtt", "statistics"].contains(name) || (name != kind && outputs.contains { $0.section == name }) {
            let advice = "it is the name of an output of the section '\(name)'"
            section.report(.invalid(name, expected: "a name for this output", advice: advice), at: place)
        } else if let first = names[name] {
            section.report(.duplicate(name, what: "name", first: first.description), at: place)
        }
        names[name] = names[name] ?? place
        return name
    }

    /// The default path, which is the same for the service and the command line.
    private var defaultDatabase: String {
        let states = environment.variables["STATE_DIRECTORY"] ?? ""
        if let state = states.split(separator: ":").first { return state + "/gattherd.db" }
        let folder = paths.folder.hasPrefix("/") ? paths.folder : environment.currentFolder + "/" + paths.folder
        return folder.hasPrefix("/etc/") ? "/var/lib/gattherd/gattherd.db" : paths.resolve("gattherd.db")
    }

    private func bluetooth(_ section: SectionReader) -> BluetoothSettings {
        var settings = BluetoothSettings()
        section.read("bus", .bus, into: &settings.bus)
        settings.adapters = adapters(section)
        section.read("connect_timeout", .duration(.seconds(1) ... .seconds(600)), into: &settings.connectTimeout)
        section.read("keep_links_on_stop", .boolean, into: &settings.keepsLinksOnStop)
        section.read("power_cycle", .boolean, into: &settings.mayPowerCycle)
        settings.rotate = rotation(section)
        return settings
    }

    private func rotation(_ section: SectionReader) -> Duration? {
        guard !section.isWord("rotate", "off") else { return nil }
        return section.value("rotate", .duration(.seconds(60) ... .seconds(86_400)))?.value
    }

    private func adapters(_ section: SectionReader) -> AdapterChoice {
        if section.isWord("adapters", "auto") { return .auto }
        guard let addresses = section.list("adapters", .bluetoothAddress) else { return .auto }
        section.refuseEmpty("adapters", "no adapter would be used; name one, or write auto")
        return .only(addresses.map(\.value))
    }

    /// Reports devices whose adapter is not used: they would never be connected.
    private func checkAdapters(_ configuration: Configuration, _ top: SectionReader) {
        guard case .only(let used) = configuration.bluetooth.adapters else { return }
        for adapter in configuration.devices.compactMap(\.adapter) where !used.contains(adapter.value) {
            guard let place = adapter.place else { continue }
            let reason = "'adapters' in 'bluetooth' does not name \(adapter.value); add it, or leave 'adapter' out"
            top.report(.conflict(reason), at: place)
        }
    }

    private func history(_ section: SectionReader, _ settings: inout HistorySettings) {
        if let path = section.value("path", .path) { settings.path = paths.resolve(path) }
        section.read("commit_interval", .duration(.milliseconds(1) ... .seconds(60)), into: &settings.commitInterval)
        section.section("keep") { readKeep($0, &settings.keep) }
        section.read("max_size", .size, into: &settings.maxSize)
        settings.backlog.maxSize = settings.maxSize / 2
        section.section("backlog") { backlog in
            backlog.read("keep", .retention, into: &settings.backlog.keep)
            backlog.read("max_size", .size, into: &settings.backlog.maxSize)
        }
        section.read("when_full", .choice("what to do"), into: &settings.whenFull)
    }

    private func readKeep(_ section: SectionReader, _ keep: inout HistorySettings.Keep) {
        section.read("samples", .retention, into: &keep.samples)
        section.read("minutes", .retention, into: &keep.minutes)
        section.read("hours", .retention, into: &keep.hours)
    }

    private func http(_ section: SectionReader) -> HTTPSettings? {
        section.forbid("token", .secret(key: "token", instead: "put it into a file and write token_file"))
        let listen = section.required("listen", .listen)
        let token = section.value("token_file", .path).map { paths.resolve($0) }
        let hosts = section.list("hosts", .hostName)?.map(\.value) ?? []
        let hasSampleMetrics = section.value("sample_metrics", .boolean)?.value ?? false
        guard let listen else { return nil }
        if !listen.value.isLoopback, section.place(of: "token_file") == nil, let place = listen.place {
            let advice = "other hosts could read everything at \(listen.value.host); add it, or listen on 127.0.0.1"
            section.report(.missing(key: "token_file", section: "'http'", advice: advice), at: place)
        }
        var settings = HTTPSettings(listen: listen.value)
        settings.tokenFile = token
        settings.hosts = hosts
        settings.hasSampleMetrics = hasSampleMetrics
        return settings
    }

    private func log(_ section: SectionReader) -> LogSettings {
        var settings = LogSettings()
        section.read("level", .choice("a log level"), into: &settings.level)
        section.read("format", .choice("a log format"), into: &settings.format)
        return settings
    }
}

/// Reads the section `fleet`, and checks the keys that depend on it.
struct FleetReader {
    /// The key of the section that names the database of the leases.
    private static let database = "postgres"

    /// Reads the section after all others.
    func read(_ top: SectionReader, into configuration: inout Configuration) {
        var settings = FleetSettings()
        var leases: Located<Bool>?
        top.section("fleet") { section in
            leases = section.value("leases", .boolean)
            section.read("publish", .choice("a publisher"), into: &settings.publisher)
        }
        settings.hasLeases = leases?.value ?? false
        configuration.fleet = settings
        if settings.hasLeases { checkDatabase(configuration, leases?.place, top) }
        if !settings.hasLeases { checkDevices(configuration, top) }
    }

    private func checkDatabase(_ configuration: Configuration, _ place: ConfigPlace?, _ top: SectionReader) {
        guard let place, !configuration.outputs.contains(where: { $0.section == Self.database }) else { return }
        let reason = "the leases are in the central database; add the section '\(Self.database)'"
        top.report(.conflict(reason), at: place)
    }

    /// Reports devices with `gateways` in a configuration without leases.
    private func checkDevices(_ configuration: Configuration, _ top: SectionReader) {
        for place in configuration.devices.compactMap({ $0.gateways?.first?.place }) {
            top.report(.conflict("'gateways' is of use with leases only; write fleet: {leases: true}"), at: place)
        }
    }
}
