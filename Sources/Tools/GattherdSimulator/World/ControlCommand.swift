import GattherdDBus
import GattherdGATT

/// An ordered change of the simulation.
///
/// Numbers are indices into the adapters and peripherals of ``World``.
enum ControlCommand: Hashable, Sendable {
    /// Ends the link from the peripheral's side.
    case drop(Int)
    /// Keeps the link over the next crash of bluetoothd.
    case keepLink(Int)
    /// Puts the peripheral out of range.
    case vanish(Int)
    case appear(Int)
    case silence(Int, SimulatorOrder.Silence)
    case failDevice(Int, method: String, FaultList.Fault, times: Int)
    case failAdapter(Int, method: String, FaultList.Fault, times: Int)
    case setPower(adapter: Int, Bool)
    case unplug(adapter: Int)
    case plug(adapter: Int)
    case restartDaemon(isGraceful: Bool, downtime: Duration)
    case notify(Int, characteristic: Int, [UInt8])
    /// Sets the notifications per second of each characteristic with generated values.
    case setRate(Int, Double)
    case changeServices(Int, hiding: Set<BluetoothUUID>)
    case hideServices(Int, Set<BluetoothUUID>)
    /// Removes the peripheral's keys of all bonds.
    case forget(Int)
    /// Sets the peripheral's minimum latency of each response.
    case slow(Int, Duration)
    /// Ends the next links right after they are made.
    case refuse(Int, times: Int)
    /// Sends this number of notifications at once.
    case burst(Int, Int)
    case advertise(Int, Bool)
    /// Sets the clock that dates stored records.
    case setClock(Int, error: Duration)
    case resetRecords(Int)
    /// Hangs the controller, or lets it answer again.
    case hang(adapter: Int, Bool)
}

extension ControlCommand {
    /// The peripheral that the command changes, if any.
    var peripheral: Int? {
        switch self {
        case .drop(let index), .keepLink(let index), .vanish(let index), .appear(let index), .silence(let index, _),
            .failDevice(let index, _, _, _), .notify(let index, _, _), .setRate(let index, _),
            .changeServices(let index, _), .hideServices(let index, _), .forget(let index), .slow(let index, _),
            .refuse(let index, _), .burst(let index, _), .advertise(let index, _), .setClock(let index, _),
            .resetRecords(let index):
            index
        case .failAdapter, .setPower, .unplug, .plug, .restartDaemon, .hang: nil
        }
    }
}

/// The ordered failures of the next calls of methods.
struct FaultList: Hashable, Sendable {
    enum Fault: Hashable, Sendable {
        case error(DBusError)
        /// Never answers the call.
        case noReply
    }

    private struct Order: Hashable, Sendable {
        let method: String
        let fault: Fault
        var times: Int
    }

    private var orders: [Order] = []

    mutating func add(_ fault: Fault, of method: String, times: Int) {
        guard times > 0 else { return }
        orders.append(Order(method: method, fault: fault, times: times))
    }

    /// Removes and returns the next fault of a method, if one was ordered.
    mutating func removeNext(_ method: String) -> Fault? {
        guard let index = orders.firstIndex(where: { $0.method == method }) else { return nil }
        orders[index].times -= 1
        let fault = orders[index].fault
        if orders[index].times == 0 { orders.remove(at: index) }
        return fault
    }
}
