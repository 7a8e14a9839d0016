import GattherdSync
import Synchronization

/// The connection tasks of one connect, from the first to the last.
///
/// A connection task that waited for the end of its own connect would never end.
final class ConnectionTaskRun: Sendable {
    /// The current task's runs; several if a connection task connects another peripheral.
    @TaskLocal static var current: [ConnectionTaskRun] = []

    let link: Link
    /// A task that outlives its connection task belongs to no run.
    private let isEnded = Atomic(false)

    init(of link: Link) {
        self.link = link
    }

    var isOver: Bool { isEnded.load(ordering: .relaxed) }

    /// Returns true if the current task is a connection task of the link.
    static func isCurrent(of link: Link) -> Bool {
        current.contains { $0.link === link && !$0.isOver }
    }

    func end() {
        isEnded.store(true, ordering: .relaxed)
    }
}

extension Central {
    /// True in a connection task of the peripheral while its link is up.
    ///
    /// - Throws: `notConnected` in such a task if the link has been lost.
    func isInConnectionTask(of peripheral: PeripheralID) throws(BluetoothError) -> Bool {
        guard let link = link(peripheral), ConnectionTaskRun.isCurrent(of: link) else { return false }
        guard link.connection.isConnected else {
            let lost = "\(peripheral.address): the link was lost while its connection task ran"
            throw BluetoothError(.notConnected, lost).during(.connect)
        }
        return true
    }

    /// Runs the connection tasks, and cancels them at the deadline.
    func runConnectionTasks(
        _ link: Link,
        until deadline: ContinuousClock.Instant,
        late: BluetoothError
    ) async throws(BluetoothError) {
        let run = ConnectionTaskRun(of: link)
        defer { run.end() }
        let runs = ConnectionTaskRun.current + [run]
        let isDone = try await withDeadline(deadline, late.during(.connectionTask)) { () throws(BluetoothError) in
            try await ConnectionTaskRun.$current.withValue(runs) { await self.resultOfConnectionTasks(link) }.get()
            return true
        }
        guard isDone == true else { throw BluetoothError(.cancelled, "cancelled") }
    }

    private func resultOfConnectionTasks(_ link: Link) async -> Result<Void, BluetoothError> {
        let tasks = registry.withLock { $0.connectionTasks.filter { ($0.peripheral ?? link.id) == link.id } }
        for task in tasks {
            do {
                try await task.body(Peripheral(link.id, of: self))
            } catch let error as BluetoothError {
                return .failure(error.during(.connectionTask))
            } catch is CancellationError where Task.isCancelled {
                return .failure(BluetoothError(.cancelled, "cancelled").during(.connectionTask))
            } catch {
                return .failure(BluetoothError(error).during(.connectionTask))
            }
        }
        await subscribeLasting(link)
        return .success(())
    }
}
