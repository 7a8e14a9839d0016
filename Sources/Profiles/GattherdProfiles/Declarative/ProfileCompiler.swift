import GattherdGATT
import GattherdModel
import GattherdYAML

/// Compiles the text of a declarative profile, or reports all errors.
struct ProfileCompiler {
    private static let contract: Int64 = 1
    private static let maximumServices = 64
    private static let maximumCharacteristics = 256
    private static let maximumControls = 64
    private static let maximumTasks = 64
    private static let mostDownloads = 16
    private static let maximumFrames = 64
    private static let maximumModels = 256

    private let findings = ProfileFindings()

    /// The errors of a text that does not compile.
    struct Failure: Error {
        let findings: [ProfileFinding]
    }

    static func compile(_ octets: [UInt8], origin: String) throws(Failure) -> DeclarativeProfile {
        let compiler = ProfileCompiler()
        let profile = compiler.parse(octets).flatMap { compiler.profile($0, origin: origin) }
        guard var profile, compiler.findings.isEmpty else { throw Failure(findings: compiler.findings.sorted) }
        profile.revision = octets.hashValue
        return profile
    }

    private func parse(_ octets: [UInt8]) -> MappingReader? {
        do throws(YAMLError) {
            if let node = try YAML.parse(octets) { return MappingReader(node, .profile, findings: findings) }
            findings.report("the file is empty; a profile starts with 'contract: 1'", at: .start)
        } catch {
            findings.report(error.problem, at: error.position)
        }
        return nil
    }

    /// Compiles the profile; with another contract number it stops after that key.
    private func profile(_ reader: MappingReader, origin: String) -> DeclarativeProfile? {
        guard let contract = reader.required("contract", .contract) else { return nil }
        guard contract == Self.contract else {
            let advice = "this gattherd knows contract \(Self.contract); update it"
            reader.report("it is written for contract \(contract); \(advice)", at: "contract")
            return nil
        }
        defer { reader.finish() }
        if reader.has("advertisement") { return listener(reader, origin: origin) }
        let name = reader.required("profile", .slug)
        let title = reader.value("title", .words)
        let services = reader.node("services")?.text == "any" ? [] : services(reader)
        var shared = SharedValues(reader)
        let characteristics = list(reader, "characteristics", .characteristic, Self.maximumCharacteristics) {
            CharacteristicCompiler($0).compile(&shared)
        }
        let controls = list(reader, "controls", .control, Self.maximumControls) { ControlCompiler($0).compile() }
        let streams = characteristics.compactMap(\.value?.descriptor)
        let options = shared.options
        let tasks = list(reader, "on_connect", .task, Self.maximumTasks) {
            TaskCompiler(streams: streams, options: options).task($0)
        }
        let downloads = list(reader, "records", .download, Self.mostDownloads) {
            DownloadCompiler(streams: streams, options: options).download($0)
        }
        checkNames(characteristics, controls, reader)
        var profile = DeclarativeProfile(
            name: name ?? "",
            title: title ?? name ?? "",
            services: services,
            isOptIn: reader.value("opt_in", .boolean) ?? false,
            isStandIn: reader.value("stand_in", .boolean) ?? false,
            origin: origin,
            shared: shared,
            compiled: characteristics.compactMap(\.value),
            compiledControls: controls.compactMap(\.value),
            tasks: tasks.compactMap(\.value)
        )
        profile.unresolvedDownloads = downloads.compactMap(\.value)
        readIdentity(reader, into: &profile)
        return profile
    }

    /// Reads `identify` and `tested`.
    private func readIdentity(_ reader: MappingReader, into profile: inout DeclarativeProfile) {
        profile.models = list(reader, "identify", .model, Self.maximumModels) { ModelReader($0).model() }
            .compactMap(\.value)
        guard let node = reader.node("tested") else { return }
        profile.sources = (node.elements ?? [node]).compactMap { ProfileGrammar<String>.words.read($0, findings) }
    }

    /// Compiles a profile of advertisements.
    private func listener(_ reader: MappingReader, origin: String) -> DeclarativeProfile {
        reader.forbid(
            ["services", "opt_in", "characteristics", "controls", "on_connect", "records"],
            "cannot be combined with 'advertisement': such devices are never connected"
        )
        let name = reader.required("profile", .slug)
        let title = reader.value("title", .words)
        let shared = SharedValues(reader)
        let frames = list(reader, "advertisement", .advertisement, Self.maximumFrames) {
            AdvertisementCompiler($0, shared).compile()
        }
        if frames.isEmpty { reader.report("'advertisement' needs at least one element", at: "advertisement") }
        checkStreams(frames.map { ($0.reader, $0.value?.descriptor.stream) })
        checkSources(frames)
        var profile = DeclarativeProfile(
            name: name ?? "",
            title: title ?? name ?? "",
            isStandIn: reader.value("stand_in", .boolean) ?? false,
            origin: origin,
            options: shared,
            frames: frames.compactMap(\.value).securedTogether
        )
        readIdentity(reader, into: &profile)
        return profile
    }

    private func services(_ reader: MappingReader) -> [BluetoothUUID] {
        let nodes = reader.elements("services")
        if nodes.isEmpty || nodes.count > Self.maximumServices {
            reader.report(
                "a profile needs 'services': a list of 1 to \(Self.maximumServices), such as [180d], or any",
                at: "services"
            )
        }
        return nodes.prefix(Self.maximumServices).compactMap { ProfileGrammar.uuid.read($0, findings) }
    }

    private func list<Value>(
        _ reader: MappingReader,
        _ key: String,
        _ schema: MappingSchema,
        _ most: Int,
        _ compile: (MappingReader) -> Value?
    ) -> [(reader: MappingReader, value: Value?)] {
        let nodes = reader.elements(key)
        if nodes.count > most { reader.report("there are more than \(most) \(key)", at: key) }
        return nodes.prefix(most).compactMap { node in
            MappingReader(node, schema, findings: findings).map { ($0, compile($0)) }
        }
    }

    private func checkNames(
        _ characteristics: [(reader: MappingReader, value: CompiledCharacteristic?)],
        _ controls: [(reader: MappingReader, value: CompiledControl?)],
        _ reader: MappingReader
    ) {
        if characteristics.isEmpty && controls.isEmpty { reader.report("a profile needs 'characteristics'") }
        let streams = checkStreams(characteristics.map { ($0.reader, $0.value?.descriptor.stream) })
        var names: Set<String> = []
        for (reader, value) in controls {
            guard let control = value?.descriptor else { continue }
            if !names.insert(control.name).inserted {
                reader.report("duplicate control '\(control.name)'; choose another name", at: "name")
            }
            if let echo = control.echo, !streams.contains(echo) {
                let known = streams.sorted().joined(separator: ", ")
                reader.report("the profile has no stream '\(echo)'; it has \(known)", at: "echo")
            }
        }
    }
}

extension ProfileCompiler {
    /// Reports duplicate names and returns all.
    @discardableResult
    private func checkStreams(_ all: [(reader: MappingReader, stream: String?)]) -> Set<String> {
        var streams: Set<String> = []
        for (reader, stream) in all {
            guard let stream, !streams.insert(stream).inserted else { continue }
            reader.report("duplicate stream '\(stream)'; choose another name", at: "stream")
        }
        return streams
    }

    /// Reports frames that never get data, because an earlier one takes all of it.
    private func checkSources(_ frames: [(reader: MappingReader, value: CompiledAdvertisement?)]) {
        var earlier: [AdvertisementDescriptor] = []
        for (reader, value) in frames {
            guard let frame = value?.descriptor else { continue }
            if let first = earlier.first(where: { $0.takesSameData(as: frame) }) {
                let remedy = "give each its 'begins', 'length' or 'name', or make them one frame with 'when'"
                reader.report("the earlier frame '\(first.stream)' takes the same data; \(remedy)", at: "stream")
            }
            earlier.append(frame)
        }
    }
}

extension AdvertisementDescriptor {
    /// Returns true if both frames fit the same data, which the earlier one then takes.
    fileprivate func takesSameData(as other: Self) -> Bool {
        source == other.source && before == other.before && names == other.names
            && beginning == other.beginning && length == other.length
    }
}

extension YAMLPosition {
    fileprivate static let start = YAMLPosition(line: 1, column: 1)
}
