import GattherdGATT

/// An event at a peripheral.
///
/// Tests compare these events with the results of clients.
enum TruthEvent: Hashable, Sendable {
    enum DisconnectReason: String, Hashable, Sendable {
        /// Ended by the peripheral.
        case remote
        /// Ended by a client.
        case local
        /// Lost radio contact.
        case timeout
        /// Ended after an unanswered request.
        case unanswered
        /// Ended because a client set `Blocked`.
        case blocked
        /// Ended because keys did not match or a pairing failed.
        case authentication
        case powerOff = "power-off"
        case unplugged
        /// Ended with bluetoothd.
        case daemon
    }

    case notification(NotificationRecord)
    case write(BluetoothAddress, BluetoothUUID, [UInt8], error: UInt8?)
    case subscribed(BluetoothAddress, BluetoothUUID, Bool)
    case connected(BluetoothAddress, adapter: String)
    case disconnected(BluetoothAddress, DisconnectReason)
    /// A client crashed bluetoothd.
    case crashed
}

/// A sent notification.
struct NotificationRecord: Hashable, Sendable {
    let address: BluetoothAddress
    let characteristic: BluetoothUUID
    /// The number of the characteristic's earlier notifications.
    let number: UInt64
    let payload: [UInt8]
    /// True if a subscriber could receive it.
    var isDelivered: Bool
}
