import GattherdBluetooth
import GattherdDBus

/// The answers to peripherals that pair, and the pairings that we requested.
struct PairingResponder {
    /// The task that opens the connection of a pairing.
    typealias Opening = Task<Result<DBusConnection, DBusError>, Never>

    private struct Attempt {
        let method: PairingMethod
        var opening: Opening?
        /// Our other connection to the bus, which the pairing is requested on.
        var connection: DBusConnection?
        /// True once the peripheral has requested its passkey.
        var isProven = false
    }

    /// The decisions about pairings that peripherals begin.
    var delegate: (any PairingDelegate)?
    private var attempts: [PeripheralID: Attempt] = [:]

    /// The number of pairings that we requested and that have not ended.
    var count: Int { attempts.count }

    /// Our connections to the bus that pairings are requested on.
    var connections: [DBusConnection] { attempts.values.compactMap(\.connection) }

    /// Records a pairing that we request; returns false if there is one already.
    mutating func begin(_ id: PeripheralID, by method: PairingMethod) -> Bool {
        guard attempts[id] == nil else { return false }
        attempts[id] = Attempt(method: method)
        return true
    }

    mutating func setOpening(_ opening: Opening, of id: PeripheralID) {
        attempts[id]?.opening = opening
    }

    /// Cancels the attempts to open connections.
    func cancelOpenings() {
        for attempt in attempts.values { attempt.opening?.cancel() }
    }

    mutating func setConnection(_ connection: DBusConnection, of id: PeripheralID) {
        attempts[id]?.connection = connection
    }

    mutating func end(_ id: PeripheralID) {
        attempts[id] = nil
    }

    /// True if the peripheral paired by a passkey without having requested it.
    func hasSkippedPasskey(_ id: PeripheralID) -> Bool {
        guard let attempt = attempts[id], case .passkey = attempt.method else { return false }
        return !attempt.isProven
    }

    /// Answers a request: by the method of a pairing that we requested, else by the delegate.
    ///
    /// Peripherals that are neither connected by us nor served are rejected.
    mutating func respond(to request: PairingRequest, from id: PeripheralID, isActive: Bool) -> PairingResponse {
        if let method = attempts[id]?.method {
            let response = method.answer(to: request)
            if case .passkey = response { attempts[id]?.isProven = true }
            return response
        }
        guard isActive else { return .rejected("it is not being connected") }
        return delegate?.answer(request, from: id) ?? .rejected("no program answers pairing requests")
    }
}
