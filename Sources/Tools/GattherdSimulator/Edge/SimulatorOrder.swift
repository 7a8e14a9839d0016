public import GattherdGATT

/// A change of the neighbourhood while it runs, in people's words: peripherals by name or address, adapters by name.
public enum SimulatorOrder: Hashable, Sendable {
    public enum Silence: String, CaseIterable, Hashable, Sendable {
        case off
        /// It answers, but notifies nothing of its own accord.
        case notifications
        /// It answers nothing either, though the link stays up.
        case all
    }

    /// The peripheral ends its link and advertises again; while the adapter's controller hangs, the host is not told.
    case drop(String)
    /// The kernel keeps its link when bluetoothd crashes next, which it seldom does.
    case keepLink(String)
    /// It is out of range, until ``appear(_:)``.
    case vanish(String)
    case appear(String)
    case silence(String, Silence)
    /// Fails the next calls of a method.
    ///
    /// The target is a peripheral, or an adapter for `Adapter1`'s methods. The error is a D-Bus error
    /// (`org.bluez.Error.Failed: text`, or `Failed: text`), an ATT code (`0x0d`), `no-reply` for no answer at all,
    /// or empty for what is usual. The method `ConnectedSignal` leaves out the signal of `Connected`.
    case failNext(target: String, method: String, error: String, times: Int)
    case setPowered(adapter: String, Bool)
    case unplug(adapter: String)
    case plug(adapter: String)
    /// bluetoothd ends and is back after a while: in good order, or as after a crash.
    case restartDaemon(isGraceful: Bool, downtime: Duration)
    /// Sends one notification with these octets.
    case notify(String, characteristic: BluetoothUUID, [UInt8])
    /// Notifications in a second, of each characteristic that has values of its own.
    case setRate(String, Double)
    /// All attribute handles move, and these services are gone.
    case changeServices(String, without: [BluetoothUUID])
    /// These services are gone and all others are there; no attribute handle moves.
    case hideServices(String, [BluetoothUUID])
    /// The peripheral loses the keys of its bonds.
    case forget(String)
    /// The peripheral takes so long for each answer; zero for as long as its scenario says.
    case slow(String, Duration)
    /// It ends the next links right after they are made.
    case refuse(String, times: Int)
    /// So many notifications at once, of each characteristic that has values of its own.
    case burst(String, Int)
    /// Whether it advertises while it is not connected.
    case advertise(String, Bool)
    /// Whether the adapter's controller answers nothing.
    case hang(adapter: String, Bool)
}

/// Why an order cannot be carried out.
public struct SimulatorOrderError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
