import GattherdMachines

/// A client that can be handed from the thread that dialled to the actor that uses it from then on.
final class BrokerClient: Sendable {
    let handle: MosquittoHandle

    private init(_ handle: consuming MosquittoHandle) {
        self.handle = handle
    }

    /// Makes a client and begins to connect it; looking the host up may block for long.
    ///
    /// libmosquitto tries the next address only when one fails at once, so that we choose: a host that is
    /// known by an IPv6 address but listens on IPv4 would never be reached.
    ///
    /// - Parameters:
    ///   - settings: Where.
    ///   - will: What the broker says when we vanish.
    ///   - first: Which of the host's addresses to begin with.
    /// - Returns: A client whose connection is under way.
    /// - Throws: ``BrokerFault`` when no address could even be tried.
    static func dial(
        _ settings: DeliverySettings,
        will: (topic: String, payload: String),
        first: Int
    ) throws(BrokerFault) -> BrokerClient {
        let addresses: [String]
        do throws(ResolverError) {
            addresses = try HostAddresses.resolve(settings.host)
        } catch {
            throw .unreachable(settings, "\(error)")
        }
        var fault = BrokerFault.unreachable(settings, "it has no address")
        for offset in addresses.indices {
            do throws(MosquittoError) {
                return try connect(settings, to: addresses[(first + offset) % addresses.count], will)
            } catch {
                fault = .unreachable(settings, "\(error)")
            }
        }
        throw fault
    }

    private static func connect(
        _ settings: DeliverySettings,
        to address: String,
        _ will: (topic: String, payload: String)
    ) throws(MosquittoError) -> BrokerClient {
        let handle = try MosquittoHandle(settings)
        try handle.configure(settings, will: will)
        try handle.connect(to: address, settings)
        return BrokerClient(handle)
    }
}

extension BrokerFault {
    static func unreachable(_ settings: DeliverySettings, _ detail: String) -> BrokerFault {
        BrokerFault(.unreachable, "cannot reach the broker at \(settings.host):\(settings.port): \(detail)")
    }
}
