import GattherdGATT
import GattherdYAML

/// Parses `adapters` and `gateways`.
struct GatewayReader {
    /// The limit that keeps the default addresses of adapters unique.
    private static let maximumCount = 16

    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    func gateways(_ nodes: [YAMLNode]) -> [GatewaySpec] {
        if nodes.count > Self.maximumCount {
            problems.add("a scenario has \(Self.maximumCount) gateways at most", at: nodes[Self.maximumCount].position)
        }
        let gateways = nodes.enumerated().map { gateway($1, number: $0) }
        for (index, node) in nodes.enumerated()
        where gateways[..<index].contains(where: { $0.name.lowercased() == gateways[index].name.lowercased() }) {
            problems.add("there is another gateway '\(gateways[index].name)'", at: node.position)
        }
        return gateways
    }

    private func gateway(_ node: YAMLNode, number: Int) -> GatewaySpec {
        var fields = MappingFields(node, "a gateway", problems)
        let name = fields.value("name", ScenarioValue.nameWords, ScenarioValue.name)
        let position = fields.position("at")
        var gateway = GatewaySpec(name: name ?? "gateway-\(number + 1)", position: position ?? .origin)
        gateway.adapters = adapters(fields.list("adapters") ?? [], gateway: number)
        if gateway.adapters.isEmpty { gateway.adapters = [defaultAdapter(0, gateway: number)] }
        fields.finish()
        if !fields.has("name") { problems.add("a gateway needs 'name'", at: fields.position) }
        if !fields.has("at") {
            problems.add("a gateway needs its position in metres; write for example at: [12, 3.5]", at: fields.position)
        }
        return gateway
    }

    /// Parses the adapters of a gateway.
    func adapters(_ nodes: [YAMLNode], gateway: Int = 0) -> [AdapterSpec] {
        let adapters = nodes.enumerated().map { adapter($1, $0, gateway: gateway) }
        for (index, node) in nodes.enumerated()
        where adapters[..<index].contains(where: { $0.name == adapters[index].name }) {
            problems.add("there is another adapter '\(adapters[index].name)'", at: node.position)
        }
        return adapters
    }

    private func adapter(_ node: YAMLNode, _ number: Int, gateway: Int) -> AdapterSpec {
        var fields = MappingFields(node, "an adapter", problems)
        var adapter = defaultAdapter(number, gateway: gateway)
        adapter.name =
            fields.value("name", "an adapter's name; write hci and a number", Self.adapterName) ?? adapter.name
        adapter.address = fields.address("address")?.description ?? adapter.address
        adapter.slots = fields.integer("slots", in: 1...255)
        adapter.isPowered = fields.boolean("powered") ?? true
        adapter.isPresent = fields.boolean("present") ?? true
        fields.finish()
        return adapter
    }

    private func defaultAdapter(_ number: Int, gateway: Int) -> AdapterSpec {
        var adapter = AdapterSpec()
        adapter.name = "hci\(number)"
        let octet = number + gateway * Self.maximumCount
        adapter.address =
            "00:00:5E:00:53:" + (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: true)
        return adapter
    }

    private static func adapterName(_ text: String) -> String? {
        guard text.hasPrefix("hci"), let number = UInt8(text.dropFirst(3)) else { return nil }
        return "hci\(number)"
    }
}

/// Parses `air`.
struct AirReader {
    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    func air(_ node: YAMLNode) -> AirSpec {
        var fields = MappingFields(node, "'air'", problems)
        var air = AirSpec()
        air.seed = fields.integer("seed", in: 0...UInt64.max) ?? air.seed
        air.exponent = fields.number("exponent", in: 1...6) ?? air.exponent
        air.sensitivity = fields.integer("sensitivity", in: -120 ... -30) ?? air.sensitivity
        air.noise = fields.number("noise", in: 0...20) ?? air.noise
        air.bodies = fields.node("bodies").flatMap(bodies)
        fields.finish()
        return air
    }

    private func bodies(_ node: YAMLNode) -> AirSpec.Bodies? {
        var fields = MappingFields(node, "'bodies'", problems)
        let attenuation = fields.number("attenuation", in: 0...60)
        var bodies = AirSpec.Bodies(attenuation: attenuation ?? 0)
        bodies.share = fields.number("share", in: 0...1) ?? bodies.share
        bodies.stay =
            fields.value("stay", "a duration from 100ms to 1h") {
                ScenarioValue.duration($0).flatMap { (.milliseconds(100) ... .seconds(3600)).contains($0) ? $0 : nil }
            } ?? bodies.stay
        fields.finish()
        if !fields.has("attenuation") {
            problems.add("'bodies' needs 'attenuation' in dB; write for example attenuation: 12", at: fields.position)
        }
        return bodies
    }
}
