import GattherdBluetooth
import GattherdDBus

/// Links to peripherals: made, confirmed and ended; on the Bluetooth thread only.
final class Links {
    /// The longest wait for the answer to a cancellation, beyond the deadline of the attempt.
    ///
    /// BlueZ ends a link that was made late within 2.6 s. Before that, a caller could take it for a usable one.
    private static let cancellationLimit = Duration.seconds(3)

    /// A peripheral with an attempt that bluetoothd has not cancelled yet.
    private struct Cancellation: Hashable {
        let peripheral: PeripheralID
        /// The number of the cancellation.
        let number: UInt64
    }

    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let waiters: ChangeWaiters
    private let operationLimit: Duration
    /// The peripherals that we connect or serve: only they may pair.
    private var active: Set<PeripheralID> = []
    /// The cancellations that bluetoothd has not answered: until then it may be ending a link.
    private var cancellations: Set<Cancellation> = []
    private var lastCancellation: UInt64 = 0

    init(_ client: BluetoothdClient, _ objects: BlueZObjects, _ waiters: ChangeWaiters, operationLimit: Duration) {
        (self.client, self.objects, self.waiters) = (client, objects, waiters)
        self.operationLimit = operationLimit
    }

    /// The number of active peripherals and of unanswered cancellations.
    var count: Int { active.count + cancellations.count }

    /// True for a peripheral that we connect or serve.
    func isActive(_ id: PeripheralID) -> Bool { active.contains(id) }

    /// Records that a peripheral is served, until its link ends.
    func markActive(_ id: PeripheralID) {
        active.insert(id)
    }

    /// Records that the link of a peripheral ended: bluetoothd has no link of a cancelled attempt to end.
    func recordEnd(of id: PeripheralID) {
        active.remove(id)
        removeCancellations(of: id)
    }

    /// Removes the cancellations of a peripheral that bluetoothd has removed: it never answers them.
    func removeCancellations(of id: PeripheralID) {
        cancellations = cancellations.filter { $0.peripheral != id }
    }

    func removeAll() {
        (active, cancellations) = ([], [])
    }

    // MARK: - Connecting

    func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        let deadline = SuspendingClock.now.advanced(by: timeout)
        try await waitForCancellation(of: peripheral, until: deadline)
        let path = try objects.devicePath(peripheral)
        let isUp = try objects.status(peripheral).isConnected
        active.insert(peripheral)
        do throws(BluetoothError) {
            let refusal = try await request(path, isUp: isUp, within: max(.zero, deadline - SuspendingClock.now))
            do throws(BluetoothError) {
                try await confirm(peripheral, path, until: deadline)
            } catch {
                throw error.kind == .notConnected ? refusal ?? error : error
            }
        } catch {
            active.remove(peripheral)
            await giveUp(peripheral, path, after: error)
            throw isSwitchedOff(peripheral) ? BluetoothError(.adapterUnavailable, "the adapter is off") : error
        }
    }

    /// Requests the link; returns the refusal of a link that may be up nevertheless.
    ///
    /// If the link is up, BlueZ also connects the peripheral by classic Bluetooth, unless it has advertised that it has
    /// none. A failure of that does not concern the link.
    private func request(
        _ path: String,
        isUp: Bool,
        within timeout: Duration
    ) async throws(BluetoothError) -> BluetoothError? {
        do throws(DBusError) {
            try await client.call(path, BlueZ.device, "Connect", within: timeout)
        } catch  where error.name == "org.bluez.Error.AlreadyConnected" {
            return nil
        } catch {
            let fault = BluetoothError(error, missing: .unknownPeripheral)
            guard isUp, fault.kind == .connectionFailed else { throw fault }
            return fault
        }
        return nil
    }

    /// Waits for the link: BlueZ 5.66 may answer "ok" while it tries again, and may connect without a signal.
    private func confirm(
        _ peripheral: PeripheralID,
        _ path: String,
        until deadline: SuspendingClock.Instant
    ) async throws(BluetoothError) {
        do throws(DBusError) {
            try await objects.refresh(path, within: max(.zero, deadline - SuspendingClock.now))
        } catch  where Self.meansNoProperties(error) {
            objects.update { $0.change(path, BlueZ.device, .properties(["Connected": .boolean(true)]), []) }
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        try await waiters.wait(for: peripheral, until: deadline, "the link after BlueZ's answer") {
            () throws(BluetoothError) in
            if try objects.status(peripheral).isConnected { return () }
            // The link was up, and has ended.
            guard active.contains(peripheral) else {
                throw BluetoothError(.notConnected, "the link dropped at once")
            }
            return nil
        }
        active.insert(peripheral)
    }

    /// True if a program other than bluetoothd owns org.bluez and has no readable properties.
    ///
    /// Its answer to `Connect` must suffice then.
    private static func meansNoProperties(_ error: DBusError) -> Bool {
        ["UnknownMethod", "UnknownInterface", "NotSupported"].contains { error.name.hasSuffix(".Error." + $0) }
    }

    /// Cancels an attempt in bluetoothd, which would otherwise succeed later without a client.
    private func giveUp(_ peripheral: PeripheralID, _ path: String, after error: BluetoothError) async {
        switch error.kind {
        // After a link that ended at once, BlueZ 5.66 tries again by itself.
        case .timedOut, .notConnected: break
        case .cancelled where Task.isCancelled: break
        default: return
        }
        cancel(peripheral, path)
        // A cancelled task does not wait.
        let deadline = SuspendingClock.now + Self.cancellationLimit
        try? await waitForCancellation(of: peripheral, until: deadline)
    }

    private func cancel(_ peripheral: PeripheralID, _ path: String) {
        lastCancellation += 1
        let cancellation = Cancellation(peripheral: peripheral, number: lastCancellation)
        cancellations.insert(cancellation)
        client.ask(path, BlueZ.device, "Disconnect", within: operationLimit) { [weak self] _ in
            self?.cancellations.remove(cancellation)
            self?.waiters.wake(peripheral)
        }
    }

    /// Waits until bluetoothd has cancelled the last attempt: a link that it made meanwhile would be lost at once.
    func waitForCancellation(
        of peripheral: PeripheralID,
        until deadline: SuspendingClock.Instant
    ) async throws(BluetoothError) {
        try await waiters.wait(for: peripheral, until: deadline, "the end of its last attempt") {
            cancellations.contains { $0.peripheral == peripheral } ? nil : ()
        }
    }

    private func isSwitchedOff(_ id: PeripheralID) -> Bool {
        guard let path = objects.tree.adapterPath(id.adapter) else { return false }
        return objects.tree.adapters[path]?.status?.isPowered == false
    }

    // MARK: - Disconnecting

    func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try objects.requireLoaded()
        guard let path = objects.tree.devicePath(peripheral) else { return }
        do throws(DBusError) {
            try await client.call(path, BlueZ.device, "Disconnect")
            guard objects.tree.status(peripheral)?.isConnected == true else { return }
            try await objects.refresh(path, within: operationLimit)
        } catch {
            let fault = BluetoothError(error, missing: .unknownPeripheral)
            guard fault.kind == .notConnected || fault.kind == .unknownPeripheral else { throw fault }
        }
    }

    /// Removes a peripheral from BlueZ, with all its objects: each may have a bond.
    func forget(_ peripheral: PeripheralID) async throws(BluetoothError) {
        try objects.requireLoaded()
        for path in objects.tree.devicePaths(peripheral) { try await forget(path, of: peripheral.adapter) }
    }

    /// Removes the peripheral of an object, which may have another address than before.
    func forget(_ path: String, of address: BluetoothAddress) async throws(BluetoothError) {
        let adapter = try objects.adapterPath(address)
        do throws(DBusError) {
            try await client.call(adapter, BlueZ.adapter, "RemoveDevice", [.objectPath(path)])
        } catch {
            let fault = BluetoothError(error, missing: .adapterUnavailable)
            guard fault.kind != .unknownPeripheral else { return }
            throw fault
        }
    }
}
