import GattherdBluetooth
import GattherdModel

extension LinkFault {
    /// Creates the link's fault from a failed operation; `action` describes the operation.
    init(_ error: BluetoothError, while action: String) {
        let detail = "\(action): \(error.detail)"
        switch error.kind {
        case .authentication: self.init(.authentication, detail, isPermanent: true)
        case .timedOut: self.init(.timedOut, detail)
        case .busy: self.init(.busy, detail)
        case .connectionFailed: self.init(.connectFailed, detail)
        case .unknownPeripheral: self.init(.vanished, detail)
        case .adapterUnavailable: self.init(.adapterPoweredOff, detail)
        case .serviceUnavailable: self.init(.daemonLost, detail)
        case .notConnected: self.init(.remote, detail)
        case .cancelled: self.init(.local, detail)
        case .unknownAttribute, .notSupported, .notPermitted, .invalidLength, .invalidOffset, .att, .accessDenied,
            .invalidValue:
            self.init(.gattError, detail)
        case .notificationsStuck: self.init(.gattError, detail, isPermanent: true)
        case .other: self.init(.unknown, detail)
        }
    }

    /// The same fault with an early retry.
    var transient: LinkFault { LinkFault(reason, detail) }
}

extension BluetoothError {
    /// True if the error affects only the characteristic and not the link.
    var isAboutAttribute: Bool {
        switch kind {
        case .unknownAttribute, .authentication, .notSupported, .notPermitted, .invalidLength, .invalidOffset, .att,
            .notificationsStuck:
            true
        case .adapterUnavailable, .serviceUnavailable, .unknownPeripheral, .notConnected, .connectionFailed, .busy,
            .timedOut, .cancelled, .accessDenied, .invalidValue, .other:
            false
        }
    }
}
