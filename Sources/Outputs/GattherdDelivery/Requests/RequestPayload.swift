import GattherdMQTT
import GattherdModel

/// The reason why a request is refused: an unexpected payload, or a refused action.
struct RequestError: Error, Hashable, CustomStringConvertible {
    /// The reason in words, for people.
    let description: String
    /// The reason as one word, for programs; the member `reason` of a response.
    var reason: String?
}

/// The payload of a request: a bare value, or an object with the allowed keys and `transaction`.
struct RequestPayload {
    /// The kinds of payload and their values.
    enum Content: Hashable {
        case nothing
        case bare(JSONValue)
        case object([JSONMember])
    }

    /// The requester's transaction, a JSON text that the response repeats.
    private(set) var transaction: String?
    /// The requested value, or the error in the payload.
    private(set) var content: Result<Content, RequestError>

    /// Reads a payload of any content and any length.
    init(_ message: BrokerMessage) {
        do throws(RequestError) {
            content = .success(try Self.content(message))
        } catch {
            content = .failure(error)
        }
        if case .success(.object(let members)) = content {
            transaction = members.first { $0.name == "transaction" }?.source
        }
    }

    /// The member `name`, or the bare value; the only other allowed keys are `others` and `transaction`.
    func value(_ name: String, and others: [String] = []) throws(RequestError) -> JSONValue? {
        switch try content.get() {
        case .nothing: return nil
        case .bare(let value): return value
        case .object: return try members([name] + others).first { $0.name == name }?.value
        }
    }

    static let epochKey = "epoch"

    /// The member `epoch`, a whole number; `nil` without one.
    var epoch: Int64? {
        get throws(RequestError) {
            guard case .object(let members) = try content.get(),
                let member = members.first(where: { $0.name == Self.epochKey })
            else { return nil }
            guard case .integer(let number) = member.value else {
                throw RequestError(description: "'epoch' must be a whole number")
            }
            return number
        }
    }

    /// The members of an object; only `names` and `transaction` are allowed as keys.
    func members(_ names: [String]) throws(RequestError) -> [JSONMember] {
        let members: [JSONMember]
        switch try content.get() {
        case .nothing: members = []
        case .bare: throw RequestError(description: "write an object: {\"\(names[0])\": …}")
        case .object(let all): members = all.filter { $0.name != "transaction" }
        }
        if let other = members.first(where: { !names.contains($0.name) }) {
            let known = names.map { "'\($0)', " }.joined().dropLast(2)
            throw RequestError(description: "unknown key '\(other.name)'; use \(known) and 'transaction'")
        }
        return members
    }

    private static func content(_ message: BrokerMessage) throws(RequestError) -> Content {
        guard message.length <= BrokerMessage.maximum else {
            let most = BrokerMessage.maximum
            throw RequestError(description: "a payload of \(message.length) bytes is too long; at most \(most)")
        }
        guard let text = String(validating: message.payload, as: UTF8.self) else {
            throw RequestError(description: "the payload is not UTF-8")
        }
        let trimmed = text.utf8.drop { isSpace($0) }
        guard let first = trimmed.first else { return .nothing }
        do throws(JSONError) {
            let value = try JSONReader.value(of: message.payload)
            if case .object(let members) = value { return .object(members) }
            return .bare(value)
        } catch {
            guard let word = bareWord(trimmed, startingWith: first) else {
                throw RequestError(description: error.description)
            }
            return .bare(.string(word))
        }
    }

    /// The text itself, if it does not look like JSON: `on`, `eco mode`.
    private static func bareWord(_ text: Substring.UTF8View, startingWith first: UInt8) -> String? {
        guard !"{[\"".utf8.contains(first), text.count <= 256 else { return nil }
        let word = text.reversed().drop { isSpace($0) }.reversed()
        return word.contains { $0 < 0x20 } ? nil : String(decoding: word, as: UTF8.self)
    }

    private static func isSpace(_ octet: UInt8) -> Bool {
        octet == 0x20 || octet == 0x09 || octet == 0x0A || octet == 0x0D
    }
}
