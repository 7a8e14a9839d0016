import GattherdMQTT
import GattherdMachines

/// The subscriptions that the broker refuses in this session, and the pauses before they are tried again.
///
/// A broker may refuse a subscription for a moment only, for example while its list of users is loaded. Without another
/// attempt the gateway would receive no requests until the session's end.
struct RefusedSubscriptions: Hashable, Sendable {
    /// A refused filter, and the broker's reason.
    struct Problem: Hashable, Sendable {
        let filter: String
        let reason: String

        var remedy: String {
            reason == MQTTReason.packetTooLarge.words
                ? "raise the broker's limit of packets" : "allow our user to subscribe"
        }
    }

    private struct Refusal: Hashable, Sendable {
        /// The refused filters, with the broker's reasons.
        var filters: [String: String] = [:]
        var pause: Duration
        /// True from a refusal until the next attempt.
        var isWaiting = false
    }

    private let shortest: Duration
    private let longest: Duration
    private var refusals: [PublishQueue.State: Refusal] = [:]

    init(_ options: DeliveryMachine.Options) {
        (shortest, longest) = (options.refusedBackoff.minimum, options.topics.retryPause)
    }

    /// The first refused filter that disables a feature.
    var problem: Problem? {
        let filters = refusals.filter { $0.key.isNeeded }.flatMap(\.value.filters)
        return filters.min { $0.key < $1.key }.map { Problem(filter: $0.key, reason: $0.value) }
    }

    /// Records the broker's answer to a subscription.
    ///
    /// - Returns: The pause before the state's subscriptions are tried again; `nil` if they are accepted, if an attempt
    ///   is planned already, or if the subscription serves a search that starts over anyway.
    mutating func answered(_ state: PublishQueue.State, to filter: String, _ reason: MQTTReason) -> Duration? {
        guard reason.isFailure else {
            refusals[state]?.filters[filter] = nil
            if refusals[state]?.filters.isEmpty == true { refusals[state] = nil }
            return nil
        }
        guard state.isRepeatedAfterRefusal else { return nil }
        var refusal = refusals[state] ?? Refusal(pause: shortest)
        refusal.filters[filter] = reason.words
        let pause = refusal.isWaiting ? nil : refusal.pause
        if pause != nil { refusal.pause = min(refusal.pause * 2, longest) }
        refusal.isWaiting = true
        refusals[state] = refusal
        return pause
    }

    /// Records that the state's subscriptions are tried again.
    mutating func retry(_ state: PublishQueue.State) {
        refusals[state]?.isWaiting = false
    }

    mutating func endSession() { refusals = [:] }
}

extension PublishQueue.State {
    /// True for subscriptions that last for the session.
    fileprivate var isRepeatedAfterRefusal: Bool {
        isNeeded || self == .subscribeToState || self == .subscribeToRetained
    }

    /// True for subscriptions without which requests or Home Assistant's starts are missed.
    var isNeeded: Bool { self == .subscribeToRequests || self == .subscribeToBirth }
}
