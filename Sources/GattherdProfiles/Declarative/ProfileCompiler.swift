import GattherdGATT
import GattherdModel
import GattherdYAML

/// Turns the text of a declarative profile into one that runs, or into everything that is wrong with it.
struct ProfileCompiler {
    private static let contract: Int64 = 1
    private static let mostServices = 64
    private static let mostCharacteristics = 256
    private static let mostControls = 64
    private static let mostTasks = 64

    private let findings = Findings()

    /// Why a text is no profile.
    struct Failure: Error {
        let findings: [Finding]
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
            findings.report("there is nothing in it; a profile begins with 'contract: 1'", at: .start)
        } catch {
            findings.report(error.problem, at: error.position)
        }
        return nil
    }

    /// The contract decides what the rest means, so with another one nothing else is looked at.
    private func profile(_ reader: MappingReader, origin: String) -> DeclarativeProfile? {
        guard let contract = reader.required("contract", .integer(1...(.max))) else { return nil }
        guard contract == Self.contract else {
            let advice = "this gattherd knows contract \(Self.contract); update it"
            reader.report("it is written for contract \(contract); \(advice)", at: "contract")
            return nil
        }
        defer { reader.finish() }
        let name = reader.required("profile", .slug)
        let title = reader.value("title", .words)
        let services = reader.node("services")?.text == "any" ? [] : services(reader)
        let characteristics = list(reader, "characteristics", .characteristic, Self.mostCharacteristics) {
            CharacteristicCompiler($0).compile()
        }
        let controls = list(reader, "controls", .control, Self.mostControls) { ControlCompiler($0).compile() }
        let streams = characteristics.compactMap(\.value?.descriptor)
        let tasks = list(reader, "on_connect", .task, Self.mostTasks) { TaskCompiler(streams: streams).task($0) }
        checkNames(characteristics, controls, reader)
        return DeclarativeProfile(
            name: name ?? "",
            title: title ?? name ?? "",
            services: services,
            isOptIn: reader.value("opt_in", .boolean) ?? false,
            isStandIn: reader.value("stand_in", .boolean) ?? false,
            origin: origin,
            compiled: characteristics.compactMap(\.value),
            compiledControls: controls.compactMap(\.value),
            tasks: tasks.compactMap(\.value)
        )
    }

    private func services(_ reader: MappingReader) -> [BluetoothUUID] {
        let nodes = reader.elements("services")
        if nodes.isEmpty || nodes.count > Self.mostServices {
            reader.report(
                "a profile needs 'services': a list of 1 to \(Self.mostServices), such as [180d], or any",
                at: "services"
            )
        }
        return nodes.prefix(Self.mostServices).compactMap { Grammar.uuid.read($0, findings) }
    }

    private func list<Value>(
        _ reader: MappingReader,
        _ key: String,
        _ kind: MappingKind,
        _ most: Int,
        _ compile: (MappingReader) -> Value?
    ) -> [(reader: MappingReader, value: Value?)] {
        let nodes = reader.elements(key)
        if nodes.count > most { reader.report("there are more than \(most) \(key)", at: key) }
        return nodes.prefix(most).compactMap { node in
            MappingReader(node, kind, findings: findings).map { ($0, compile($0)) }
        }
    }

    private func checkNames(
        _ characteristics: [(reader: MappingReader, value: CompiledCharacteristic?)],
        _ controls: [(reader: MappingReader, value: CompiledControl?)],
        _ reader: MappingReader
    ) {
        if characteristics.isEmpty && controls.isEmpty { reader.report("a profile needs 'characteristics'") }
        var streams: Set<String> = []
        for (reader, value) in characteristics {
            guard let stream = value?.descriptor.stream, !streams.insert(stream).inserted else { continue }
            reader.report("there is a stream '\(stream)' already; give this one another name", at: "stream")
        }
        var names: Set<String> = []
        for (reader, value) in controls {
            guard let control = value?.descriptor else { continue }
            if !names.insert(control.name).inserted {
                reader.report("there is a control '\(control.name)' already; give this one another name", at: "name")
            }
            if let echo = control.echo, !streams.contains(echo) {
                let known = streams.sorted().joined(separator: ", ")
                reader.report("the profile has no stream '\(echo)'; it has \(known)", at: "echo")
            }
        }
    }
}

extension YAMLPosition {
    fileprivate static let start = YAMLPosition(line: 1, column: 1)
}
