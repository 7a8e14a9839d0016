import GattherdBluetooth
import GattherdModel
import GattherdSync

/// The subscriptions and decoders of one link.
///
/// They outlive a session that is replaced on the same link: a characteristic that both sessions use stays subscribed,
/// its values go on without a gap, and its decoder remembers what came before.
final class LinkSubscriptions: Sendable {
    /// A subscription that a session wants.
    struct Key: Hashable, Sendable {
        let remote: RemoteCharacteristic
        let path: NotificationPath
        /// True for a characteristic that answers what is written, and is no stream.
        let isAnswer: Bool
    }

    private struct Decoder: Hashable, Sendable {
        let name: String
        let profile: ProfileIdentity
    }

    private struct Shared: Sendable {
        var tokens: [Key: SubscriptionToken] = [:]
        var decoders: [Decoder: Int] = [:]
        /// Decoders without a stream, which end when nothing of theirs can come any more.
        var retired: Set<Int> = []
    }

    private let shared = Locked(Shared())

    /// The token of a subscription, if it was made.
    func token(of key: Key) -> SubscriptionToken? {
        shared.withLock { $0.tokens[key] }
    }

    func add(_ key: Key, _ token: SubscriptionToken) {
        shared.withLock { $0.tokens[key] = token }
    }

    func remove(_ key: Key) {
        shared.withLock { $0.tokens[key] = nil }
    }

    /// Removes all subscriptions but `wanted`, and returns what was removed.
    func retain(_ wanted: Set<Key>) -> [Key: SubscriptionToken] {
        shared.withLock { shared in
            let rest = shared.tokens.filter { !wanted.contains($0.key) }
            shared.tokens = shared.tokens.filter { wanted.contains($0.key) }
            return rest
        }
    }

    /// Assigns a decoder to each stream, by ``ProfileAssignment/Stream/decoder``: the one that the link had, if the profile
    /// is the same, or the `next`.
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

    /// Removes the decoders without a stream, and returns them.
    func takeRetiredDecoders() -> [Int] {
        shared.withLock { shared in
            defer { shared.retired = [] }
            return Array(shared.retired)
        }
    }

    /// Removes everything, and returns it.
    func takeAll() -> (tokens: [SubscriptionToken], decoders: [Int]) {
        shared.withLock { shared in
            defer { shared = Shared() }
            return (Array(shared.tokens.values), Array(shared.retired) + Array(shared.decoders.values))
        }
    }
}

/// Why a session ends.
enum LinkSessionEnd: Sendable {
    /// The link ends or is not ours any more.
    case closed
    /// Another session takes over on the same link.
    case replaced
}
