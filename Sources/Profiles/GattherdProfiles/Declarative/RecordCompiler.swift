import GattherdModel
import GattherdYAML

/// Compiles `record`: the metrics that number and date the records of a characteristic.
struct RecordCompiler {
    /// The units of times.
    static let units: [(word: String, value: Duration)] = [
        ("ms", .milliseconds(1)), ("s", .seconds(1)), ("min", .seconds(60)), ("h", .seconds(3600)),
        ("d", .seconds(86_400)),
    ]

    private let reader: MappingReader
    private let metrics: [MetricDescriptor]

    /// Creates a compiler; `nil` if the values are not records.
    init?(_ characteristic: MappingReader, metrics: [MetricDescriptor]) {
        guard let node = characteristic.node("record"),
            let reader = MappingReader(node, .record, findings: characteristic.findings)
        else { return nil }
        (self.reader, self.metrics) = (reader, metrics)
    }

    /// Returns the rule and the metrics of one record.
    func compile() -> (rule: RecordRule, metrics: [MetricDescriptor]) {
        defer { reader.finish() }
        var rule = RecordRule(doubt: metrics.count)
        rule.number = metric("number")
        rule.wrapBits = rule.number.flatMap { metrics[$0].wrapBits }
        rule.isDense = reader.value("dense", .boolean) ?? true
        let (clock, age) = (span("time"), span("age"))
        if let age { rule.time = .age(age) } else if let clock { rule.time = .clock(clock) }
        if clock != nil, age != nil { reader.report("a record has either 'time' or 'age'", at: "age") }
        rule.offset = span("offset")
        rule.interval = span("interval")
        (rule.index, rule.total) = (metric("index"), metric("total"))
        rule.companion = reader.value("with", .identifier)
        if rule.companion != nil, rule.number == nil {
            reader.report("'with' needs the number that both records have: 'number'", at: "with")
        }
        rule.repeated = Set(metrics.indices.filter { metrics[$0].isRepeated })
        if !["number", "time", "age"].contains(where: reader.has) {
            reader.report("a record needs a 'number', a 'time' or an 'age', each the name of a metric")
        }
        if metrics.contains(where: { $0.name == MetricDescriptor.timeUncertain.name }) {
            reader.report("'\(MetricDescriptor.timeUncertain.name)' is added to records; give the metric another name")
        }
        return (rule, metrics.map(\.single) + [.timeUncertain])
    }

    private func metric(_ key: String) -> Int? {
        guard let name = reader.value(key, .identifier) else { return nil }
        if let index = metrics.firstIndex(where: { $0.name == name }) { return index }
        reader.report("the stream has no metric '\(name)'", at: key)
        return nil
    }

    /// Reads a metric that is a date or has a unit of time.
    private func span(_ key: String) -> RecordRule.Span? {
        guard let index = metric(key) else { return nil }
        let unit = Self.units.first { $0.word == metrics[index].unit }
        let isDate = metrics[index].unit == nil && metrics[index].kind == .state
        guard let unit = unit?.value ?? (isDate ? .seconds(1) : nil) else {
            let words = Self.units.map(\.word).joined(separator: ", ")
            reader.report("'\(metrics[index].name)' is not a date and has none of the units \(words)", at: key)
            return nil
        }
        return RecordRule.Span(metric: index, unit: unit)
    }
}

extension MetricDescriptor {
    /// The metric of one record of a payload with several.
    fileprivate var single: MetricDescriptor {
        MetricDescriptor(name: name, unit: unit, kind: kind, wrapBits: wrapBits, domain: domain, reset: reset)
    }
}
