import GattherdBluetooth
import GattherdGATT
import GattherdSync

/// What is to change in a running daemon, gathered until whoever carries it out comes to it.
final class PendingChanges: Sendable {
    struct Due: Sendable {
        var isReload = false
        /// It is time to look who is still there.
        var isLook = false
        /// Those that a rule may want; bounded by ``mostPeripherals``.
        var peripherals: [BluetoothAddress: PeripheralStatus] = [:]
    }

    private static let mostPeripherals = 1000

    /// One element when there is something to do.
    let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let due = Locked(Due())

    init() {
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func reload() { add { $0.isReload = true } }

    func look() { add { $0.isLook = true } }

    /// False when there is no room: it may be offered again.
    func offer(_ peripheral: PeripheralStatus) -> Bool {
        let hasRoom = due.withLock { due in
            guard due.peripherals.count < Self.mostPeripherals else { return false }
            due.peripherals[peripheral.id.address] = peripheral
            return true
        }
        wake.yield()
        return hasRoom
    }

    /// Everything that is to be done now.
    func take() -> Due {
        due.withLock { due in
            defer { due = Due() }
            return due
        }
    }

    private func add(_ change: (inout Due) -> Void) {
        due.withLock { change(&$0) }
        wake.yield()
    }
}
