import GattherdBluetooth
import GattherdGATT
import GattherdModel
import GattherdSync

/// What came of a reload.
enum ReloadOutcome: Hashable, Sendable {
    /// The configuration is taken, but for changes of these sections, which wait for a restart.
    case done(waiting: [String])
    /// The configuration from before goes on.
    case failed(String)

    /// One line for people.
    var summary: String {
        switch self {
        case .done([]): "the configuration is reloaded"
        case .done(let sections):
            "the configuration is reloaded; changes of \(sections.joined(separator: " and ")) take effect only at a "
                + "restart: systemctl restart gattherd"
        case .failed(let reason):
            "the configuration is wrong and not reloaded: \(reason.split(separator: "\n").first ?? "")"
        }
    }
}

/// The part of the configuration's files that the daemon does not follow, after its reloads so far.
struct ReloadState: Hashable, Sendable {
    private var restartNeeded: [String] = []
    private var error: String?

    /// Records a reload.
    ///
    /// A failed one leaves the sections that wait for a restart as they were.
    mutating func record(_ outcome: ReloadOutcome) {
        switch outcome {
        case .done(let waiting): (restartNeeded, error) = (waiting, nil)
        case .failed(let reason): error = reason.split(separator: "\n").first.map { String($0) } ?? ""
        }
    }

    /// The member of the status; `nil` while the daemon follows its files.
    var status: DaemonStatus.Configuration? {
        guard !restartNeeded.isEmpty || error != nil else { return nil }
        return DaemonStatus.Configuration(restartNeeded: restartNeeded, error: error)
    }
}

/// What is to change in a running daemon, gathered until whoever carries it out comes to it.
package final class PendingChanges: Sendable {
    struct Due: Sendable {
        var isReload = false
        /// Those who wait for the reload's outcome.
        var reloadWaiters: [AsyncStream<ReloadOutcome>.Continuation] = []
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

    package func reload() { add { $0.isReload = true } }

    /// Reloads, and returns what came of it; `nil` when the daemon ends before.
    func reloaded() async -> ReloadOutcome? {
        let (outcomes, waiter) = AsyncStream.makeStream(of: ReloadOutcome.self, bufferingPolicy: .bufferingNewest(1))
        add {
            $0.isReload = true
            $0.reloadWaiters.append(waiter)
        }
        for await outcome in outcomes { return outcome }
        return nil
    }

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
