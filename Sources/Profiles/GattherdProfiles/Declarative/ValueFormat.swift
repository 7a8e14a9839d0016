import GattherdModel
import GattherdYAML

/// The conversion keys of a field.
struct ValueFormat {
    private static let kinds = MetricKind.allCases.map { (word: $0.rawValue, value: $0) }
    private static let plain = "has a meaning for numbers only"

    let unit: String?
    let kind: MetricKind
    private let source: FieldSource?
    /// The width in bits of a counter that wraps.
    private let wraps: Int?
    private let unknown: [Conversion.Unknown]
    /// The bits of the elements of a list that are left out.
    private let omitted: UInt64?
    private let labels: [Conversion.Label]
    private let set: [Conversion.Label]
    private let scale: Scale
    private let base: Double?
    private let table: ValueTable?
    private let clamp: ClosedRange<Double>?
    private let range: ClosedRange<Double>?
    /// The values that the field can have.
    private let domain: ValueDomain
    private let decimals: Int
    /// The time after which an event is reset; `nil` for other metrics.
    private let resetTime: Duration?
    private let isBoolean: Bool

    private static let resetTimes: ClosedRange<Duration> = .seconds(1)...ProfileRules.longestDuration
    private static let standardDecimals: Int64 = 2

    /// - Parameters:
    ///   - field: The field's mapping.
    ///   - source: The source of the raw value; `nil` after a reported error.
    init?(_ field: MappingReader, source: FieldSource?) {
        self.source = source
        let type = source?.type
        let isNumber = source?.isNumber ?? true
        let labels = LabelReader.labels(field, "enum", source.map { $0.isWhole } ?? true, source?.rawRange)
        let bits = 0...Int64(8 * (type?.width ?? 8) - 1)
        let set = LabelReader.labels(field, "set", source.map { $0.isWhole } ?? true, bits)
        unit = field.value("unit", .words)
        base = source?.isWhole ?? true ? field.value("base", .base)?.value : nil
        Self.checkLabels(field, isNumber: isNumber, hasLabels: labels != nil, hasSet: set != nil)
        if let source { Self.checkKeys(field, source) }
        guard let scale = ScaleReader.scale(field) else { return nil }
        self.labels = labels ?? []
        self.set = set ?? []
        domain = Self.domain(source, labels, set)
        self.scale = scale
        let stated = field.value("kind", .choice(Self.kinds))
        kind = stated ?? (isNumber && labels == nil && set == nil ? .gauge : .state)
        let isWrongKind = stated == nil && field.has("kind")
        if kind != .counter, !isWrongKind { field.forbid(["wraps"], "is for 'kind: counter'") }
        wraps = field.value("wraps", .integer(1...64)).map { Int($0) }
        unknown = UnknownReader.patterns(field, type: type, signedBits: source?.signedBits)
        omitted = source.flatMap { Self.omitted(field, $0.type) }
        table = ValueTableReader.table(field)
        clamp = ScaleReader.range(field, "clamp")
        range = ScaleReader.range(field, "range")
        decimals = Int(field.value("decimals", .integer(0...9)) ?? Self.standardDecimals)
        isBoolean = source?.isBoolean == true || type == .boolean
        resetTime = field.value("reset", .duration(Self.resetTimes))
        if source.map({ !$0.isNumber && !isBoolean }) == true || set != nil {
            field.forbid(["reset"], "is for numbers, labels and booleans")
        }
    }

    /// The keys that change a number.
    private static let numeric = ["scale", "offset", "table", "clamp", "range"]

    /// Reports keys that cannot be combined with labels, or need a number.
    private static func checkLabels(_ field: MappingReader, isNumber: Bool, hasLabels: Bool, hasSet: Bool) {
        if hasLabels || hasSet { field.forbid(["base"], "cannot be combined with labels") }
        if !isNumber { field.forbid(numeric + ["unknown", "set"], Self.plain) }
        if hasLabels { field.forbid(numeric + ["unit", "set"], "cannot be combined with 'enum'") }
        if hasSet { field.forbid(numeric + ["unit"], "cannot be combined with 'set'") }
    }

    /// Reports keys that have no meaning for the source.
    private static func checkKeys(_ field: MappingReader, _ source: FieldSource) {
        let type = source.type
        if source.isAggregate {
            field.forbid(numeric + ["unknown"], "has no meaning for a value made of other metrics")
        }
        if source.isIncrease {
            field.forbid(["unknown", "table", "clamp"], "has no meaning for an increase")
        }
        if source.isFormula {
            field.forbid(["scale", "offset", "unknown", "enum", "set", "base"], "is a part of the formula itself")
        } else {
            field.forbid(["decimals"], "is for 'formula'; other values have the digits of their scale")
        }
        if type == .decimal { field.forbid(["unknown"], "has no meaning for a number in ASCII digits") }
        if type != nil, !source.isText {
            field.forbid(["length"], "is for the types utf8, cstring, utf16, ascii and bytes")
        }
        if type == nil { field.forbid(["repeat", "length"], "is for fields that take bytes") }
    }

    /// Reads `omit`.
    private static func omitted(_ field: MappingReader, _ type: FieldType?) -> UInt64? {
        guard let range = type?.integerRange, let width = type?.width, field.has("repeat") else {
            field.forbid(["omit"], "is for lists of integers")
            return nil
        }
        let mask = UInt64.max >> UInt64(64 - 8 * width)
        return field.value("omit", .integer(range)).map { UInt64(bitPattern: $0) & mask }
    }

    /// The end of an event: its value becomes false, the label of 0, or the number for 0.
    ///
    /// The number ends the event also if the device never sends it, so that `unknown` and `range` do not apply.
    private var reset: MetricReset? {
        guard let resetTime, let source else { return nil }
        if isBoolean, labels.isEmpty { return MetricReset(after: resetTime, value: .boolean(false)) }
        let conversion = Conversion(
            name: "",
            labels: labels,
            scale: scale,
            base: base,
            table: table,
            clamp: clamp,
            decimals: decimals
        )
        return MetricReset(after: resetTime, value: conversion.zero(of: source.action))
    }

    /// True if an event has labels, but none to fall back to.
    var lacksRestLabel: Bool { resetTime != nil && !labels.isEmpty && !labels.contains { $0.raw == 0 } }

    /// True if implausible values are discarded.
    var hasRange: Bool { range != nil }

    /// True if some raw values have a reason.
    var hasReasons: Bool { unknown.contains { $0.reason != nil } }

    func metric(named name: String, isRepeated: Bool) -> MetricDescriptor {
        MetricDescriptor(
            name: name,
            unit: unit,
            kind: kind,
            isRepeated: isRepeated,
            wrapBits: wraps,
            domain: domain,
            reset: reset
        )
    }

    private static func domain(
        _ source: FieldSource?,
        _ labels: [Conversion.Label]?,
        _ set: [Conversion.Label]?
    ) -> ValueDomain {
        if let labels { return labels.reduce(ValueDomain.labels([])) { $0.union(.labels([$1.text])) } }
        guard let source, set == nil, source.isBoolean || source.type == .boolean else { return .open }
        return .boolean
    }

    /// Returns the reason metric of `metric`.
    static func reason(for metric: MetricDescriptor) -> MetricDescriptor {
        MetricDescriptor(name: metric.name + "_reason", kind: .state, isRepeated: metric.isRepeated)
    }

    func conversion(named name: String) -> Conversion {
        Conversion(
            name: name,
            unknown: unknown,
            omitted: omitted,
            labels: labels,
            set: set,
            scale: scale,
            base: base,
            table: table,
            clamp: clamp,
            decimals: decimals,
            range: range
        )
    }
}
