import GattherdSync

/// The phases of a central's life.
enum CentralLifecycle: Equatable, Sendable {
    /// ``Central/run()`` was not called yet.
    case new
    case running
    case closed
}

extension Central {
    /// Waits until the central runs, because ``run()`` may have been called in a task that has not started yet.
    ///
    /// - Throws: `serviceUnavailable` if it does not run or is closed; `cancelled`.
    func awaitRun() async throws(BluetoothError) {
        guard life.state != .running else { return }
        let isRunning = try await withDeadline(.now.advanced(by: .seconds(1)), unreadiness) {
            [life] () throws(BluetoothError) in
            for await state in life.watch() where state != .new { return state == .running }
            return nil
        }
        guard let isRunning else { throw BluetoothError(.cancelled, "cancelled") }
        guard isRunning else { throw unreadiness }
    }

    /// True since ``close()`` was called.
    var isClosed: Bool { registry.withLock { $0.isClosed } }

    /// Finishes all sequences, also of later consumers.
    func endSequences() {
        let (scanners, links) = registry.withLock { ($0.takeScanners(), Array($0.links.values)) }
        for scanner in scanners { scanner.mailbox.finish() }
        for link in links { link.close() }
        connectionChanges.finish()
        stateBoard.finish()
    }
}
