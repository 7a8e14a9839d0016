import GattherdBluetooth
import GattherdModel
import GattherdSync

/// The subscriptions and decoders of one link.
///
/// Subscriptions outlive a session that is replaced on the same link. A characteristic that both sessions use stays
/// subscribed: its values continue without a gap, and its decoder keeps its state.
final class LinkSubscriptions: Sendable {
    /// The key of a subscription that a session needs.
    struct Key: Hashable, Sendable {
        let remote: RemoteCharacteristic
        let path: NotificationPath
        /// True for a characteristic that carries responses to writes and is not a stream.
        let isAnswer: Bool
    }

    private struct Decoder: Hashable, Sendable {
        let name: String
        let profile: ProfileIdentity
    }

    private struct Shared: Sendable {
        var tokens: [Key: SubscriptionToken] = [:]
        var decoders: [Decoder: Int] = [:]
        /// Decoders without a stream; they end when no more values of theirs can arrive.
        var retired: Set<Int> = []
    }

    private let shared = Locked(Shared())

    /// Returns the token of a subscription, if there is one.
    func token(of key: Key) -> SubscriptionToken? {
        shared.withLock { $0.tokens[key] }
    }

    func add(_ key: Key, _ token: SubscriptionToken) {
        shared.withLock { $0.tokens[key] = token }
    }

    func remove(_ key: Key) {
        shared.withLock { $0.tokens[key] = nil }
    }

    /// Removes all subscriptions except `wanted` and returns them.
    func retain(_ wanted: Set<Key>) -> [Key: SubscriptionToken] {
        shared.withLock { shared in
            let rest = shared.tokens.filter { !wanted.contains($0.key) }
            shared.tokens = shared.tokens.filter { wanted.contains($0.key) }
            return rest
        }
    }

    /// Assigns a decoder to each stream, by ``ProfileAssignment/Stream/decoder``.
    ///
    /// A decoder of the link is reused if the profile is unchanged; otherwise `next` makes one.
    func assignDecoders(to streams: [ProfileAssignment.Stream], next: () -> Int) -> [String: Int] {
        shared.withLock { shared in
            var decoders: [Decoder: Int] = [:]
            for stream in streams {
                let key = Decoder(name: stream.decoder, profile: ProfileIdentity(stream.profile))
                decoders[key] = decoders[key] ?? shared.decoders[key] ?? next()
            }
            shared.retired.formUnion(Set(shared.decoders.values).subtracting(decoders.values))
            shared.decoders = decoders
            return Dictionary(decoders.map { ($0.key.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        }
    }

    /// Removes and returns the decoders without a stream.
    func removeRetiredDecoders() -> [Int] {
        shared.withLock { shared in
            defer { shared.retired = [] }
            return Array(shared.retired)
        }
    }

    /// Removes and returns everything.
    func removeAll() -> (tokens: [SubscriptionToken], decoders: [Int]) {
        shared.withLock { shared in
            defer { shared = Shared() }
            return (Array(shared.tokens.values), Array(shared.retired) + Array(shared.decoders.values))
        }
    }
}
