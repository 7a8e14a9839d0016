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
