import GattherdMachines
import GattherdModel

/// The content of a reading's payload.
struct ReadingContent {
    /// The time; `nil` if the payload has none.
    let time: Timestamp?
    let metrics: [JSONMember]

    /// Reads the output of ``Reading/writeJSON(seq:samples:to:)``; `nil` for any other text.
    init?(_ payload: ArraySlice<UInt8>) {
        guard case .object(let members) = try? JSONReader.value(of: payload) else { return nil }
        guard case .string(let text) = members.first(where: { $0.name == "ts" })?.value else { return nil }
        time = Timestamp(rfc3339: text.utf8)
        metrics = members.filter { !["seq", "ts", "source"].contains($0.name) }
    }

    /// The content for the delivery filter; `nil` without a time.
    var filtered: DeliveryFilter.Content? {
        guard let time else { return nil }
        let values = metrics.map { ($0.name, DeliveryFilter.Value($0)) }
        return DeliveryFilter.Content(time: time, metrics: Dictionary(values) { first, _ in first })
    }

    /// The bare value of each metric; of a list, the last element.
    ///
    /// A metric has none if its name is the last topic level of a request or a response.
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
    /// The value without JSON syntax; `nil` if there is none.
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
