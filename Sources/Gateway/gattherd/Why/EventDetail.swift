import FoundationEssentials
import GattherdGateway
import GattherdModel

/// The members of an event that explanations use; each kind of event has some of them.
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

    /// Decodes the members; empty for an unknown format.
    init(_ event: LifecycleEvent) {
        self = (try? JSONDecoder().decode(Self.self, from: Data(event.detail.utf8))) ?? Self()
    }

    private init() {}

    var target: LinkState? { to.flatMap { LinkState(rawValue: $0) } }

    /// The reason why a link ended or failed: the cause, then the detail of BlueZ.
    var cause: String? {
        let parts = [reason.map { DisplayWords.reason($0) }, detail].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: ": ")
    }
}
