import GattherdGATT
import GattherdHistory
import GattherdModel

/// The fields of a line, possibly incomplete.
struct SampleFields {
    var time: Timestamp?
    var seq: Int64 = 0
    var device: String?
    var profile: String?
    var stream: String?
    var metric: String?
    var unit: String?
    var source: String?
    var kind: String?
    var isRepeated = false
    var value: SampleValue?
}

extension SampleFields {
    /// Reads a line of JSON: an object whose members are not nested; unknown members are ignored.
    ///
    /// - Throws: ``ExchangeError`` with the fault and its remedy.
    init(json line: ArraySlice<UInt8>) throws(ExchangeError) {
        guard line.first(where: { $0 != 0x20 && $0 != 0x09 }) == UInt8(ascii: "{") else {
            throw ExchangeError("the line is not a JSON object")
        }
        var fault: ExchangeError?
        do throws(JSONError) {
            try JSONReader.forEachMember(of: line) { name, value in
                guard fault == nil else { return }
                do throws(ExchangeError) { try set(name, to: value) } catch { fault = error }
            }
        } catch {
            throw ExchangeError("\(error); write one object per line")
        }
        if let fault { throw fault }
    }

    private mutating func set(_ name: String, to value: JSONValue) throws(ExchangeError) {
        guard let value = SampleValue(value) else {
            throw ExchangeError("\"\(name)\" is nested; write a line for each sample")
        }
        try set(name, to: value)
    }

    private mutating func set(_ name: String, to found: SampleValue) throws(ExchangeError) {
        switch name {
        case "time": time = try Self.time(found)
        case "ts":
            let instant = Timestamp(microseconds: try Self.integer(found, name))
            time = time ?? instant
        case "seq": seq = try Self.integer(found, name)
        case "device": device = try Self.text(found, name)
        case "profile": profile = try Self.text(found, name)
        case "stream": stream = try Self.text(found, name)
        case "metric": metric = try Self.text(found, name)
        case "unit": unit = try Self.text(found, name)
        case "source": source = try Self.text(found, name)
        case "kind": kind = try Self.text(found, name)
        case "repeated": isRepeated = found == .boolean(true) || found == .integer(1)
        case "value": value = found
        default: break
        }
    }

    private static func time(_ value: SampleValue) throws(ExchangeError) -> Timestamp {
        guard case .text(let text) = value, let time = Timestamp(rfc3339: text.utf8) else {
            throw ExchangeError("\"time\" is not RFC 3339; write for example \"2026-11-21T03:20:05.123456Z\"")
        }
        return time
    }

    private static func integer(_ value: SampleValue, _ name: String) throws(ExchangeError) -> Int64 {
        guard case .integer(let number) = value else { throw ExchangeError("\"\(name)\" is not a whole number") }
        return number
    }

    /// Returns a text; `nil` for `null`.
    private static func text(_ value: SampleValue, _ name: String) throws(ExchangeError) -> String? {
        switch value {
        case .text(let text): return text
        case .null: return nil
        default: throw ExchangeError("\"\(name)\" is not a text")
        }
    }
}

/// Creates samples from the fields of lines; equal series share one object.
struct SeriesPool {
    fileprivate struct Key: Hashable {
        let device: String
        let profile: String
        let stream: String
        let metric: String
        let unit: String?
        let source: ReadingSource
        let kind: MetricKind
        let isRepeated: Bool
    }

    private let device: String?
    private var known: [Key: HistorySeries] = [:]

    /// - Parameter device: The device of lines that name none.
    init(device: String?) {
        self.device = device
    }

    mutating func row(_ fields: SampleFields) throws(ExchangeError) -> HistoryRow {
        guard let time = fields.time else {
            throw ExchangeError("there is no time; add \"time\" (RFC 3339) or \"ts\" (µs since 1970)")
        }
        guard Timestamp.writable.contains(time) else {
            let (first, last) = (Timestamp.writable.lowerBound.rfc3339, Timestamp.writable.upperBound.rfc3339)
            throw ExchangeError("the time is \(time.microseconds) µs since 1970; it must be from \(first) to \(last)")
        }
        guard let value = fields.value else { throw ExchangeError("there is no value; add \"value\"") }
        return HistoryRow(seq: fields.seq, time: time, series: try series(fields), value: value.withoutNULs)
    }

    private mutating func series(_ fields: SampleFields) throws(ExchangeError) -> HistorySeries {
        guard let metric = fields.metric, !metric.isEmpty else {
            throw ExchangeError("there is no metric; add \"metric\"")
        }
        guard let device = fields.device ?? device else {
            throw ExchangeError("there is no device; name one for such lines by --device")
        }
        guard Slug.isValid(device) else {
            throw ExchangeError("'\(device)' is not a name for a device; use 1 to 64 of a-z, 0-9, '_' and '-'")
        }
        let key = Key(
            device: device,
            profile: (fields.profile ?? "import").withoutNULs,
            stream: (fields.stream ?? metric).withoutNULs,
            metric: metric.withoutNULs,
            unit: fields.unit?.withoutNULs,
            source: try Self.choice(fields.source, "source") ?? .read,
            kind: try Self.choice(fields.kind, "kind") ?? .gauge,
            isRepeated: fields.isRepeated
        )
        if let series = known[key] { return series }
        let series = HistorySeries(key)
        known[key] = series
        return series
    }

    private static func choice<Choice: CaseIterable & RawRepresentable<String>>(
        _ word: String?,
        _ noun: String
    ) throws(ExchangeError) -> Choice? {
        guard let word else { return nil }
        if let choice = Choice(rawValue: word) { return choice }
        let words = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        throw ExchangeError("'\(word)' is not a \(noun); choose one of \(words)")
    }
}

extension HistorySeries {
    fileprivate convenience init(_ key: SeriesPool.Key) {
        self.init(
            device: key.device,
            profile: key.profile,
            stream: key.stream,
            metric: key.metric,
            unit: key.unit,
            source: key.source.rawValue,
            kind: key.kind,
            isRepeated: key.isRepeated
        )
    }
}

extension SampleValue {
    /// The value with a replacement character for each NUL, at which C libraries and SQL's `length()` end a text.
    fileprivate var withoutNULs: SampleValue {
        guard case .text(let text) = self else { return self }
        return .text(text.withoutNULs)
    }
}
