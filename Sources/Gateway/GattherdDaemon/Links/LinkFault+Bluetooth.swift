import GattherdBluetooth
import GattherdModel

extension LinkFault {
    /// What a failed operation means for the link; `action` says what was being done.
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
        case .other: self.init(.unknown, detail)
        }
    }

    /// The same fault, to be retried soon.
    var transient: LinkFault { LinkFault(reason, detail) }
}
