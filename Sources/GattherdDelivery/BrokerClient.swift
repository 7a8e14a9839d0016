import GattherdMachines

/// A client that can be handed from the thread that dialled to the actor that uses it from then on.
final class BrokerClient: Sendable {
    let handle: MosquittoHandle

    private init(_ handle: consuming MosquittoHandle) {
        self.handle = handle
    }

    /// Makes a client and begins to connect it; looking the host up may block for long.
    static func dial(
        _ settings: DeliverySettings,
        will: (topic: String, payload: String)
    ) throws(BrokerFault)
        -> BrokerClient
    {
        do throws(MosquittoError) {
            let handle = try MosquittoHandle(settings)
            try handle.configure(settings, will: will)
            try handle.connect(settings)
            return BrokerClient(handle)
        } catch {
            throw .unreachable(settings, error)
        }
    }
}

extension BrokerFault {
    static func unreachable(_ settings: DeliverySettings, _ error: MosquittoError) -> BrokerFault {
        BrokerFault(.unreachable, "cannot reach the broker at \(settings.host):\(settings.port): \(error)")
    }
}
