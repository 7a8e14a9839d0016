/// The reason why there is no link.
public enum DisconnectReason: String, Hashable, Sendable, CaseIterable, Codable {
    /// This program requested the end.
    case requested
    /// This program detached the link for another program.
    case detached
    /// The supervision timeout passed without a packet, or an attempt ran into its deadline.
    case timedOut
    /// The peripheral ended the link, or was lost. BlueZ before 5.83 does not distinguish the two.
    case remote
    /// Another program on this machine ended the link.
    case local
    /// The machine went to sleep.
    case suspended
    /// Pairing or encryption failed.
    case authentication
    /// bluetoothd, or the bus, is gone.
    case daemonLost
    /// The adapter is gone.
    case adapterLost
    /// The adapter was switched off.
    case adapterPoweredOff
    /// BlueZ removed the peripheral.
    case vanished
    /// The link could not be established, for none of the other reasons.
    case connectionFailed
    /// The link was established, but a connection task failed.
    case connectionTaskFailed
    /// The platform reports no reason.
    case unknown
}

extension DisconnectReason {
    /// Returns the disconnect reason for a failed attempt, before or after the link was established.
    init(failedBy error: BluetoothError, afterConnecting: Bool) {
        self =
            switch error.kind {
            case .cancelled: .requested
            case _ where afterConnecting: .connectionTaskFailed
            case .timedOut: .timedOut
            case .authentication: .authentication
            case .adapterUnavailable: .adapterPoweredOff
            case .serviceUnavailable: .daemonLost
            default: .connectionFailed
            }
    }

    /// The error of a link that ended for this reason; `nil` for the requests of this program.
    func error(of address: BluetoothAddress) -> BluetoothError? {
        switch self {
        case .requested, .detached: nil
        case .timedOut: BluetoothError(.timedOut, "\(address) did not answer any more, and the link was lost")
        case .remote: BluetoothError(.notConnected, "\(address) ended the link or was lost")
        case .local: BluetoothError(.notConnected, "another program ended the link to \(address)")
        case .suspended: BluetoothError(.notConnected, "the link to \(address) ended when the machine went to sleep")
        case .authentication: BluetoothError(.authentication, "the link to \(address) could not be encrypted")
        case .daemonLost: BluetoothError(.serviceUnavailable, "bluetoothd ended, and with it the link to \(address)")
        case .adapterLost: BluetoothError(.adapterUnavailable, "the adapter of the link to \(address) was removed")
        case .adapterPoweredOff:
            BluetoothError(.adapterUnavailable, "the adapter of the link to \(address) was switched off")
        case .vanished: BluetoothError(.unknownPeripheral, "BlueZ removed \(address)")
        case .connectionFailed: BluetoothError(.connectionFailed, "the link to \(address) could not be established")
        case .connectionTaskFailed: BluetoothError(.other, "a connection task of \(address) failed")
        case .unknown: BluetoothError(.notConnected, "the link to \(address) ended for an unknown reason")
        }
    }
}
