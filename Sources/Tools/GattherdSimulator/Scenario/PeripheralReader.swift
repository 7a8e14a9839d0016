import GattherdGATT
import GattherdYAML

/// Parses the entries of `peripherals`.
struct PeripheralReader {
    private let problems: ProblemList
    private let services: ServiceReader
    /// The names of the scenario's adapters and gateways.
    private let adapters: Set<String>
    /// True if the gateways have positions.
    private let isSite: Bool

    init(_ problems: ProblemList, _ scenario: Scenario) {
        self.problems = problems
        isSite = !scenario.gateways.isEmpty
        adapters = Set(
            scenario.allGateways.flatMap { gateway in
                gateway.adapters.flatMap { SimulatedAdapter($0, of: gateway.name).names }
            }
        )
        services = ServiceReader(problems)
    }

    /// Parses one entry, which makes several peripherals with `count`.
    func peripherals(_ node: YAMLNode) -> [PeripheralSpec] {
        var fields = MappingFields(node, "a peripheral", problems)
        let name = fields.value("name", ScenarioValue.nameWords, ScenarioValue.name)
        let address = fields.address("address")
        let count = fields.integer("count", in: 1...1000)
        var spec = PeripheralSpec(name: name ?? "", address: address ?? BluetoothAddress(value: 0))
        services.readKind(&fields, &spec)
        readBehaviour(&fields, &spec)
        if let node = fields.node("advertise") { readAdvertising(node, &spec) }
        spec.adapters =
            fields.list("adapters", isSite ? "a gateway of this scenario" : "an adapter of this scenario") {
                adapters.contains($0) ? $0 : nil
            } ?? []
        readPath(&fields, &spec)
        fields.finish()
        if name == nil { require("name", fields) }
        if spec.address.value == 0 { require("address", fields) }
        return count.map { copies(of: spec, $0) } ?? [spec]
    }

    private func require(_ key: String, _ fields: MappingFields) {
        guard !fields.has(key) else { return }
        problems.add("a peripheral needs '\(key)'", at: fields.position)
    }

    /// Parses `at` or `path`: with gateways one is required, without them neither has a meaning.
    private func readPath(_ fields: inout MappingFields, _ spec: inout PeripheralSpec) {
        let nodes = ["at", "path"].compactMap { fields.node($0) }
        if let position = fields.position("at") { spec.path = [Waypoint(time: .zero, position: position)] }
        if let path = fields.path("path") { spec.path = path }
        if let node = nodes.first, !isSite {
            problems.add("a position needs 'gateways' with positions; add them, or remove this one", at: node.position)
        } else if nodes.count == 2 {
            problems.add("a peripheral has 'at' or 'path', not both; remove one", at: nodes[1].position)
        } else if isSite, nodes.isEmpty {
            problems.add("with 'gateways', a peripheral needs 'at' or 'path'; write at: [3, 1.5]", at: fields.position)
        }
    }

    private func readBehaviour(_ fields: inout MappingFields, _ spec: inout PeripheralSpec) {
        spec.addressType =
            fields.value("address_type", "public or random") {
                ["public", "random"].contains($0) ? $0 : nil
            } ?? spec.addressType
        spec.isPresent = fields.boolean("present") ?? spec.isPresent
        spec.connectLatency = fields.duration("connect_latency") ?? spec.connectLatency
        spec.resolveLatency = fields.duration("resolve_latency") ?? spec.resolveLatency
        spec.attLatency = fields.duration("att_latency") ?? spec.attLatency
        spec.connectFailures = fields.integer("connect_failures", in: 0...1_000_000) ?? spec.connectFailures
        spec.signalsConnected = fields.boolean("signals_connected") ?? spec.signalsConnected
        let passkey = fields.integer("passkey", in: 0...UInt32(999_999))
        spec.passkey = passkey ?? spec.passkey
        spec.pairing =
            fields.word("pairing", PeripheralSpec.Pairing.self) ?? (passkey == nil ? spec.pairing : .showsPasskey)
        spec.lostTail = fields.integer("lost_tail", in: 0...10_000) ?? spec.lostTail
        spec.mtu = fields.integer("mtu", in: 23...517) ?? spec.mtu
    }

    private func readAdvertising(_ node: YAMLNode, _ spec: inout PeripheralSpec) {
        var fields = MappingFields(node, "'advertise'", problems)
        var advertising = spec.advertising
        advertising.name = fields.value("name", "a text") { $0 } ?? advertising.name
        advertising.services =
            fields.list("services", ScenarioValue.uuidWords, ScenarioValue.uuid) ?? advertising.services
        let manufacturers = fields.lists(
            "manufacturer_data",
            "a company number; write for example 0x004c",
            { ScenarioValue.integer($0) as UInt16? },
            ScenarioValue.octetsWords,
            ScenarioValue.octets
        )
        for (company, octets) in manufacturers ?? [] { advertising.manufacturerData[company] = octets }
        let services = fields.lists(
            "service_data",
            ScenarioValue.uuidWords,
            ScenarioValue.uuid,
            ScenarioValue.octetsWords,
            ScenarioValue.octets
        )
        for (uuid, octets) in services ?? [] { advertising.serviceData[uuid] = octets }
        advertising.turn =
            fields.value("turn", "a duration from 100ms to 1h") {
                ScenarioValue.duration($0).flatMap { (.milliseconds(100) ... .seconds(3600)).contains($0) ? $0 : nil }
            } ?? advertising.turn
        advertising.rssi = fields.integer("rssi", in: -126...19) ?? advertising.rssi
        advertising.appearance = fields.integer("appearance", in: 0...UInt16.max)
        advertising.interval =
            fields.value("interval", "a duration from 20ms to 1h") {
                ScenarioValue.duration($0).flatMap { (.milliseconds(20) ... .seconds(3600)).contains($0) ? $0 : nil }
            } ?? advertising.interval
        advertising.hasFlags = fields.boolean("flags") ?? advertising.hasFlags
        advertising.txPower = fields.integer("tx_power", in: -127...20)
        advertising.isConnectable = fields.boolean("connectable") ?? advertising.isConnectable
        fields.finish()
        spec.advertising = advertising
    }

    /// Makes `strap-1`, `strap-2`, … of `strap`, with ascending addresses.
    private func copies(of spec: PeripheralSpec, _ count: Int) -> [PeripheralSpec] {
        (0..<count).map { number in
            var copy = spec
            copy.name += "-\(number + 1)"
            copy.advertising.name = spec.advertising.name.map { "\($0)-\(number + 1)" }
            copy.address = BluetoothAddress(value: spec.address.value + UInt64(number))
            return copy
        }
    }
}
