import GattherdBluetooth
import GattherdDBus

/// Reads of GATT tables, values and link parameters; on the Bluetooth thread only.
final class AttributeReader {
    /// The longest wait for the objects of a GATT table that is reported as resolved.
    private static let tableTimeout = Duration.seconds(2)

    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let waiters: ChangeWaiters
    private let tableChanges: TableChanges
    private let notifications: NotificationClient
    private let operationLimit: Duration

    init(
        _ client: BluetoothdClient,
        _ objects: BlueZObjects,
        _ waiters: ChangeWaiters,
        _ tableChanges: TableChanges,
        _ notifications: NotificationClient,
        operationLimit: Duration
    ) {
        (self.client, self.objects, self.waiters) = (client, objects, waiters)
        (self.tableChanges, self.notifications) = (tableChanges, notifications)
        self.operationLimit = operationLimit
    }

    // MARK: - The table

    /// Waits for the table of a peripheral; calls `resolved` once BlueZ reports the table as resolved.
    func characteristics(
        of peripheral: PeripheralID,
        timeout: Duration,
        resolved: () -> Void
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let deadline = SuspendingClock.now.advanced(by: timeout)
        let path = try objects.devicePath(peripheral)
        _ = try? await objects.refresh(path, within: timeout)
        try await waiters.wait(for: peripheral, until: deadline, "resolving its services") {
            () throws(BluetoothError) in
            let isResolved = try objects.connectedStatus(peripheral).isServicesResolved
            return isResolved && !tableChanges.isChanging(peripheral) ? () : nil
        }
        resolved()
        // BlueZ 5.66 may signal "resolved" before the last objects: a round trip brings those on their way.
        _ = try? await objects.refresh(path, within: operationLimit)
        let table = try await table(of: peripheral, until: deadline)
        tableChanges.track(peripheral)
        return table
    }

    /// Returns the table; waits briefly for its objects while it is empty.
    private func table(
        of peripheral: PeripheralID,
        until deadline: SuspendingClock.Instant
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let tableDeadline = min(deadline, SuspendingClock.now.advanced(by: Self.tableTimeout))
        do throws(BluetoothError) {
            return try await waiters.wait(for: peripheral, until: tableDeadline, "its GATT table") {
                () throws(BluetoothError) in
                try objects.connectedStatus(peripheral)
                let table = objects.tree.table(of: peripheral)
                return table.isEmpty ? nil : table
            }
        } catch  where error.kind == .timedOut {
            return []
        }
    }

    /// Waits for the only characteristic with the UUIDs of a former one; `nil` if an unchanging table has none.
    func successor(
        of former: RemoteCharacteristic,
        timeout: Duration
    ) async throws(BluetoothError) -> RemoteCharacteristic? {
        let (peripheral, deadline) = (former.peripheral, SuspendingClock.now.advanced(by: timeout))
        return try await waiters.wait(for: peripheral, until: deadline, "the change of its services") {
            () throws(BluetoothError) -> RemoteCharacteristic?? in
            try objects.connectedStatus(peripheral)
            let table = objects.tree.table(of: peripheral)
            let same = table.filter { $0.uuid == former.uuid && $0.service == former.service }
            if same.count == 1 { return same.first }
            return tableChanges.isChanging(peripheral) ? nil : .some(nil)
        }
    }

    // MARK: - Values

    /// Reads a value; the read is open until its answer, whose echo may come after the deadline.
    func read(_ characteristic: RemoteCharacteristic) async throws(BluetoothError) -> [UInt8] {
        let path = try objects.path(of: characteristic)
        notifications.beginRead(path)
        return try await readValue(path, BlueZ.characteristic) { [notifications] outcome in
            notifications.endRead(path, try? outcome.get().first?.bytes)
        }
    }

    func read(_ descriptor: RemoteDescriptor) async throws(BluetoothError) -> [UInt8] {
        try await readValue(try objects.path(of: descriptor), BlueZ.descriptor)
    }

    private func readValue(
        _ path: String,
        _ interface: String,
        onAnswer: @escaping (Result<[DBusValue], DBusError>) -> Void = { _ in }
    ) async throws(BluetoothError) -> [UInt8] {
        do throws(DBusError) {
            let reply = try await client.call(
                path,
                interface,
                "ReadValue",
                [.properties([:])],
                within: client.attributeLimit,
                onAnswer: onAnswer
            )
            return reply.first?.bytes ?? []
        } catch {
            throw BluetoothError(error, missing: .unknownAttribute)
        }
    }

    // MARK: - Link parameters

    func mtu(of peripheral: PeripheralID) throws(BluetoothError) -> Int? {
        try objects.connectedStatus(peripheral)
        return objects.tree.mtu(of: peripheral)
    }

    func rssi(of peripheral: PeripheralID) async throws(BluetoothError) -> Int {
        let path = try objects.devicePath(peripheral)
        do throws(DBusError) {
            try await objects.refresh(path, within: operationLimit)
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        guard let rssi = try objects.status(peripheral).rssi else {
            throw BluetoothError(
                .notSupported,
                "BlueZ knows the signal strength only while a scan receives the peripheral"
            )
        }
        return rssi
    }
}
