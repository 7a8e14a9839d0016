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
    ///   - will: What the broker says when we vanish, if anything.
    ///   - first: Which of the host's addresses to begin with.
    /// - Returns: A client whose connection is under way.
    /// - Throws: ``BrokerFault`` when no address could even be tried.
    static func dial(
        _ settings: DeliverySettings,
        will: BrokerWill?,
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
            let tls = try tlsContext(settings)
            do throws(MosquittoError) {
                return try connect(settings, tls, to: addresses[(first + offset) % addresses.count], will)
            } catch {
                fault = .unanswered(settings, error, tls?.complaint)
            }
        }
        throw fault
    }

    /// Read anew each time, so that a certificate that was renewed is used from the next connection on.
    private static func tlsContext(_ settings: DeliverySettings) throws(BrokerFault) -> TLSContext? {
        guard let tls = settings.tls else { return nil }
        do throws(TLSFileError) {
            return try TLSContext(tls, host: settings.host)
        } catch {
            throw BrokerFault(.security, "\(error)")
        }
    }

    private static func connect(
        _ settings: DeliverySettings,
        _ tls: TLSContext?,
        to address: String,
        _ will: BrokerWill?
    ) throws(MosquittoError) -> BrokerClient {
        let handle = try MosquittoHandle(settings, tls)
        try handle.configure(settings, will: will)
        try handle.connect(to: address, settings)
        return BrokerClient(handle)
    }
}

extension BrokerFault {
    /// The connection could not be made, or ended before the broker answered.
    ///
    /// - Parameters:
    ///   - settings: Where, and how.
    ///   - error: What libmosquitto says.
    ///   - complaint: What TLS says.
    /// - Returns: What happened, and what it may come from.
    static func unanswered(
        _ settings: DeliverySettings,
        _ error: MosquittoError,
        _ complaint: String?
    ) -> BrokerFault {
        if let complaint { return BrokerFault(.security, complaint) }
        guard error.isEndOfConnection else { return .unreachable(settings, "\(error)") }
        let advice =
            switch settings.tls {
            case nil: "if its port is one for TLS, write mqtts:// into mqtt.url"
            case let tls? where tls.certificate == nil:
                "check that its port is one for TLS, and whether it demands a client certificate (mqtt.tls.certificate)"
            case _?: "check that its port is one for TLS, and that it knows mqtt.tls.certificate"
            }
        return .unreachable(settings, "it ended the connection without an answer; \(advice)")
    }

    static func unreachable(_ settings: DeliverySettings, _ detail: String) -> BrokerFault {
        BrokerFault(.unreachable, "cannot reach the broker at \(settings.host):\(settings.port): \(detail)")
    }
}
