public import GattherdGATT

/// A change of a running simulation.
///
/// Peripherals are identified by name or address, adapters by name.
public enum SimulatorOrder: Hashable, Sendable {
    public enum Silence: String, CaseIterable, Hashable, Sendable {
        case off
        /// Answers requests and sends no notifications.
        case notifications
        /// Makes the peripheral stop answering requests; the link stays up.
        case all
    }

    /// Ends the link from the peripheral's side. A host with a hung controller does not notice it.
    case drop(String)
    /// Keeps the link over the next crash of bluetoothd, which the kernel does rarely.
    case keepLink(String)
    /// Puts the peripheral out of range, until ``appear(_:)``.
    case vanish(String)
    case appear(String)
    case silence(String, Silence)
    /// Fails the next calls of a method.
    ///
    /// The target is a peripheral, or an adapter for `Adapter1`'s methods. The error is a D-Bus error
    /// (`org.bluez.Error.Failed: text`, or `Failed: text`), an ATT code (`0x0d`), `no-reply` for no reply at all,
    /// or empty for the method's usual error. The method `ConnectedSignal` omits the signal of `Connected`.
    case failNext(target: String, method: String, error: String, times: Int)
    case setPowered(adapter: String, Bool)
    case unplug(adapter: String)
    case plug(adapter: String)
    /// Ends bluetoothd, gracefully or as a crash, and starts it again after the downtime.
    case restartDaemon(isGraceful: Bool, downtime: Duration)
    /// Sends one notification with these bytes.
    case notify(String, characteristic: BluetoothUUID, [UInt8])
    /// Sets the notifications per second of each characteristic with generated values.
    case setRate(String, Double)
    /// Moves all attribute handles and hides these services.
    case changeServices(String, without: [BluetoothUUID])
    /// Hides these services and shows all others. Attribute handles do not move.
    case hideServices(String, [BluetoothUUID])
    /// Removes the peripheral's keys of all bonds.
    case forget(String)
    /// Sets the minimum latency of each response. Zero restores that of the scenario.
    case slow(String, Duration)
    /// Ends the next links right after they are made.
    case refuse(String, times: Int)
    /// Sends this number of notifications at once, of each characteristic with generated values.
    case burst(String, Int)
    /// Switches advertising on or off.
    case advertise(String, Bool)
    /// Sets the clock that dates stored records: its difference from the right time.
    case setClock(String, error: Duration)
    /// Loses all stored records; the next one has the number 0.
    case resetRecords(String)
    /// Hangs the adapter's controller, or lets it answer again.
    case hang(adapter: String, Bool)
}

/// The reason why an order was refused.
public struct SimulatorOrderError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
