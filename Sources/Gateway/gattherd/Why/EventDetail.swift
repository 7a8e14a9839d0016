import FoundationEssentials
import GattherdGateway
import GattherdModel

/// What an event says, as far as a story needs it; each kind of event has some of it.
struct EventDetail: Decodable, Hashable {
    var from: String?
    var to: String?
    var reason: String?
    var detail: String?
    var state: String?
    var adapter: String?
    var step: String?
    var symptom: String?
    var control: String?
    var value: String?
    var error: String?

    enum CodingKeys: String, CodingKey {
        case from, to, reason, detail, state, adapter, step, symptom, control, value, error
    }

    /// Empty where the event's text is none that we know.
    init(_ event: LifecycleEvent) {
        self = (try? JSONDecoder().decode(Self.self, from: Data(event.detail.utf8))) ?? Self()
    }

    private init() {}

    var target: LinkState? { to.flatMap { LinkState(rawValue: $0) } }

    /// Why a link ended or was not made, in words: the cause, then what BlueZ says.
    var cause: String? {
        let parts = [reason.map { DisplayWords.reason($0) }, detail].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: ": ")
    }
}
