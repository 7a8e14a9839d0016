import GattherdMachines
import GattherdModel

/// What the payload of a reading says.
struct ReadingContent {
    /// `nil` when it is not told.
    let time: Timestamp?
    let metrics: [JSONMember]

    /// Reads what ``Reading/writeJSON(seq:samples:to:)`` wrote; `nil` when it is something else.
    init?(_ payload: some Sequence<UInt8>) {
        let payload = Array(payload)
        guard case .object(let members) = try? JSONReader.value(of: payload) else { return nil }
        guard case .string(let text) = members.first(where: { $0.name == "ts" })?.value else { return nil }
        time = Timestamp(rfc3339: text.utf8)
        metrics = members.filter { !["seq", "ts", "source"].contains($0.name) }
    }

    /// As the filter wants it; `nil` without a time.
    var filtered: DeliveryFilter.Content? {
        guard let time else { return nil }
        let values = metrics.map { ($0.name, DeliveryFilter.Value($0)) }
        return DeliveryFilter.Content(time: time, metrics: Dictionary(values) { first, _ in first })
    }

    /// Each metric's bare value, of a list the last one.
    ///
    /// A metric that is called as the end of a request's or an answer's topic has none.
    var scalars: [(metric: String, payload: [UInt8])] {
        metrics.filter { $0.name != "set" && $0.name != "result" }
            .compactMap { member in member.value.scalar.map { (member.name, Array($0.utf8)) } }
    }
}

extension DeliveryFilter.Value {
    fileprivate init(_ member: JSONMember) {
        switch member.value {
        case .integer(let number): self = .number(Double(number))
        case .real(let number): self = .number(number)
        case .null, .boolean, .string, .array, .object: self = .text(member.source)
        }
    }
}

extension JSONValue {
    /// The value without any JSON around it; `nil` when there is none.
    fileprivate var scalar: String? {
        switch self {
        case .null: "null"
        case .boolean(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .string(let text): text
        case .array(let elements): elements.last?.scalar
        case .object: nil
        }
    }
}
