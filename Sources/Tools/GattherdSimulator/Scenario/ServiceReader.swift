import GattherdGATT
import GattherdYAML

/// The built-in kinds of peripherals.
enum PeripheralKind: String, CaseIterable {
    case heartRate = "heart-rate"
    case malformedHeartRate = "malformed-heart-rate"
    case numberService = "number-service"
    case battery
    case recorder
    case environmental
    case thermometer
    case custom
    case replay
    /// A peripheral that only advertises.
    case beacon
}

/// The style of generated values.
enum ValueStyle: String, CaseIterable {
    /// Each value identifies its notification.
    case counting
    /// Values look like those of a person or of the weather.
    case plausible
}

/// Parses the services of a peripheral: those of its kind, or its own.
struct ServiceReader {
    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    /// Parses the kind and its services.
    ///
    /// The first service is advertised.
    func readKind(_ fields: inout MappingFields, _ spec: inout PeripheralSpec) {
        let kind = fields.has("replay") && !fields.has("kind") ? .replay : fields.word("kind", PeripheralKind.self)
        if kind == nil, !fields.has("kind") { problems.add("a peripheral needs 'kind'", at: fields.position) }
        let rate = fields.rate("rate")
        let isPlausible = fields.word("values", ValueStyle.self) == .plausible
        let day = fields.duration("day")
        switch kind {
        case .heartRate:
            spec.services = [.heartRate(pattern(&fields), rate: rate ?? 1, isPlausible: isPlausible)]
        case .malformedHeartRate: spec.services = [.malformedHeartRate(rate: rate ?? 1)]
        case .numberService:
            spec.services = [.number(fields.integer("value", in: 0...UInt8.max) ?? 0, rate: rate ?? 0)]
        case .battery: spec.services = [.battery(fields.integer("level", in: 0...100) ?? 100, rate: rate ?? 0)]
        case .environmental where isPlausible:
            spec.services = [.weather(day: day ?? .seconds(86_400), rate: rate ?? 1)]
        case .environmental: spec.services = [.environmental(rate: rate ?? 1)]
        case .recorder:
            let records = records(&fields)
            (spec.records, spec.services) = (records, records.services)
        case .thermometer: spec.services = [.thermometer(rate: rate ?? 1)]
        case .custom: spec.services = (fields.list("services") ?? []).compactMap { service($0, rate: rate ?? 1) }
        case .beacon: spec.advertising.isConnectable = false
        case .replay, nil: break
        }
        spec.advertising.services = spec.services.prefix(1).map(\.uuid)
        if kind == .replay { ReplayReader(problems).read(&fields, &spec) }
        if kind != .battery, let level = fields.integer("battery", in: 0...UInt8(100)) {
            spec.services.append(.battery(level))
        }
        if let node = fields.node("information") { spec.services.append(information(node)) }
    }

    private func pattern(_ fields: inout MappingFields) -> HeartRatePattern {
        var pattern = HeartRatePattern()
        pattern.isWide = fields.value("format", "u8 or u16") { ["u8": false, "u16": true][$0] } ?? false
        pattern.hasEnergy = fields.boolean("energy") ?? false
        pattern.intervals = fields.integer("rr", in: 0...9) ?? 0
        pattern.contact = fields.word("contact", HeartRatePattern.Contact.self) ?? .none
        return pattern
    }

    /// Parses `records`, of which all keys are optional.
    private func records(_ fields: inout MappingFields) -> RecordsSpec {
        var spec = RecordsSpec()
        guard let node = fields.node("records") else { return spec }
        var fields = MappingFields(node, "'records'", problems)
        spec.form = fields.word("form", RecordsSpec.Form.self) ?? spec.form
        spec.count = fields.integer("count", in: 0...10_000_000) ?? spec.count
        spec.capacity = fields.integer("capacity", in: 1...10_000_000) ?? spec.capacity
        spec.interval = fields.duration("every") ?? spec.interval
        if spec.form == .numbered { spec.numberBits = fields.integer("bits", in: 8...32) == 16 ? 16 : 32 }
        spec.speed = fields.integer("speed", in: 1...1_000_000) ?? spec.speed
        spec.clockError = fields.duration("clock_ahead") ?? spec.clockError
        let least = fields.integer("cut_after", in: 0...10_000_000)
        let most = fields.integer("cut_before", in: 1...10_000_000)
        if least != nil || most != nil { spec.cut = (least ?? 0)...max(least ?? 0, most ?? 2 * (least ?? 0)) }
        fields.finish()
        return spec
    }

    private func information(_ node: YAMLNode) -> ServiceSpec {
        var fields = MappingFields(node, "'information'", problems)
        var texts: [UInt16: String] = [:]
        let keys: [(String, UInt16)] = [
            ("manufacturer", 0x2A29), ("model", 0x2A24), ("serial", 0x2A25), ("hardware", 0x2A27),
            ("firmware", 0x2A26), ("software", 0x2A28),
        ]
        for (key, number) in keys { texts[number] = fields.value(key, "a text") { $0 } }
        fields.finish()
        return .information(texts)
    }

    private func service(_ node: YAMLNode, rate: Double) -> ServiceSpec? {
        var fields = MappingFields(node, "a service", problems)
        let uuid = uuid(&fields)
        let characteristics = (fields.list("characteristics") ?? []).compactMap { characteristic($0, rate: rate) }
        fields.finish()
        return uuid.map { ServiceSpec($0, characteristics) }
    }

    private func uuid(_ fields: inout MappingFields) -> BluetoothUUID? {
        let uuid = fields.value("uuid", ScenarioValue.uuidWords, ScenarioValue.uuid)
        if !fields.has("uuid") { problems.add("'uuid' is missing", at: fields.position) }
        return uuid
    }

    private func characteristic(_ node: YAMLNode, rate: Double) -> CharacteristicSpec? {
        var fields = MappingFields(node, "a characteristic", problems)
        let uuid = uuid(&fields)
        let words = CharacteristicProperties.words
        let properties = fields.list("properties", "one of " + words.map(\.word).joined(separator: ", ")) { text in
            words.first { $0.word == text }?.property
        }
        var spec = CharacteristicSpec(
            uuid ?? BluetoothUUID(0),
            CharacteristicProperties(properties ?? [.read]),
            value: fields.octets("value") ?? []
        )
        if let payloads = fields.list("notify", ScenarioValue.octetsWords, ScenarioValue.octets), !payloads.isEmpty {
            spec.source = .list(payloads)
            spec.rate = rate
        }
        spec.rate = fields.rate("rate") ?? spec.rate
        spec.isEncrypted = fields.boolean("encrypted") ?? false
        if let node = fields.node("write") { spec.writing = writeRule(node) }
        spec.descriptors = (fields.list("descriptors") ?? []).compactMap(descriptor)
        fields.finish()
        return uuid.map { _ in spec }
    }

    private func writeRule(_ node: YAMLNode) -> WriteRule {
        var fields = MappingFields(node, "'write'", problems)
        var rule = WriteRule()
        let minimum = fields.integer("min_length", in: 0...512) ?? 0
        let maximum = fields.integer("max_length", in: 0...512) ?? 512
        if minimum <= maximum {
            rule.lengths = minimum...maximum
        } else {
            problems.add("'min_length' is more than 'max_length'", at: fields.position)
        }
        rule.refusal = fields.integer("error", in: 1...UInt8.max)
        if fields.boolean("notify_change") == true { rule.outcome = .storeAndNotifyChange }
        rule.answers = (fields.list("answers") ?? []).map(answer)
        fields.finish()
        return rule
    }

    private func answer(_ node: YAMLNode) -> NotifiedAnswer {
        var fields = MappingFields(node, "an answer", problems)
        let beginning = fields.octets("to") ?? []
        let characteristic = fields.value("on", ScenarioValue.uuidWords, ScenarioValue.uuid)
        let notifications = fields.list("notify", ScenarioValue.octetsWords, ScenarioValue.octets) ?? []
        fields.finish()
        return NotifiedAnswer(to: beginning, on: characteristic, notifications: notifications)
    }

    private func descriptor(_ node: YAMLNode) -> DescriptorSpec? {
        var fields = MappingFields(node, "a descriptor", problems)
        let uuid = uuid(&fields)
        let value = fields.octets("value") ?? []
        fields.finish()
        return uuid.map { DescriptorSpec($0, value: value) }
    }
}
