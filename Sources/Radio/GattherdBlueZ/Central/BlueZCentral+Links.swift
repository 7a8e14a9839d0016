public import GattherdBluetooth
import GattherdDBus
import GattherdGATT

extension BlueZCentral {
    // MARK: - Links

    public func connect(_ peripheral: PeripheralID, timeout: Duration) async throws(BluetoothError) {
        let path = try devicePath(peripheral)
        let deadline = SuspendingClock.now.advanced(by: timeout)
        activePeripherals.insert(peripheral)
        do throws(BluetoothError) {
            try await requestLink(path, within: timeout)
            try await confirmLink(peripheral, path, until: deadline)
        } catch {
            activePeripherals.remove(peripheral)
            await giveUp(path, after: error)
            throw isSwitchedOff(peripheral) ? BluetoothError(.adapterUnavailable, "the adapter is off") : error
        }
    }

    private func requestLink(_ path: String, within timeout: Duration) async throws(BluetoothError) {
        do throws(DBusError) {
            try await call(path, BlueZ.device, "Connect", within: timeout)
        } catch  where error.name == "org.bluez.Error.AlreadyConnected" {
            return
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
    }

    /// Waits for the link: BlueZ 5.66 may answer "ok" while it tries again, and may connect without a signal.
    private func confirmLink(
        _ peripheral: PeripheralID,
        _ path: String,
        until deadline: SuspendingClock.Instant
    ) async throws(BluetoothError) {
        do throws(DBusError) {
            try await refresh(path, within: max(.zero, deadline - SuspendingClock.now))
        } catch  where Self.meansNoProperties(error) {
            apply(tree.change(path, BlueZ.device, .properties(["Connected": .boolean(true)]), []))
        } catch {
            throw BluetoothError(error, missing: .unknownPeripheral)
        }
        try await wait(for: peripheral, until: deadline, "the link that BlueZ promised") {
            () throws(BluetoothError) in
            if try status(peripheral).isConnected { return () }
            // The link was up, and has ended.
            guard activePeripherals.contains(peripheral) else {
                throw BluetoothError(.notConnected, "the link dropped at once")
            }
            return nil
        }
        activePeripherals.insert(peripheral)
    }

    /// True for another org.bluez without readable properties: its answer to `Connect` has to do.
    private static func meansNoProperties(_ error: DBusError) -> Bool {
        ["UnknownMethod", "UnknownInterface", "NotSupported"].contains { error.name.hasSuffix(".Error." + $0) }
    }

    /// Cancels an attempt in bluetoothd, which would otherwise succeed later without a client.
    private func giveUp(_ path: String, after error: BluetoothError) async {
        switch error.kind {
        case .timedOut: _ = try? await call(path, BlueZ.device, "Disconnect")
        case .cancelled where Task.isCancelled:
            // A cancelled task cannot wait for an answer.
            guard let owner else { return }
            try? bus?.post(owner, path, BlueZ.device, "Disconnect")
        default: break
        }
    }

    public func disconnect(_ peripheral: PeripheralID) async throws(BluetoothError) {
        _ = try service()
        guard let path = tree.devicePath(peripheral) else { return }
        do throws(DBusError) {
            try await call(path, BlueZ.device, "Disconnect")
            if tree.status(peripheral)?.isConnected == true { try await refresh(path, within: limits.operation) }
        } catch {
            let fault = BluetoothError(error, missing: .unknownPeripheral)
            guard fault.kind == .notConnected || fault.kind == .unknownPeripheral else { throw fault }
        }
    }

    public func forget(_ peripheral: PeripheralID) async throws(BluetoothError) {
        let adapter = try adapterPath(peripheral.adapter)
        guard let path = tree.devicePath(peripheral) else { return }
        do throws(DBusError) {
            try await call(adapter, BlueZ.adapter, "RemoveDevice", [.objectPath(path)])
        } catch {
            let fault = BluetoothError(error, missing: .adapterUnavailable)
            guard fault.kind != .unknownPeripheral else { return }
            throw fault
        }
    }

    // MARK: - Calls and objects

    /// Calls bluetoothd, within ``Limits/operation`` by default.
    @discardableResult
    func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue] = [],
        within limit: Duration? = nil,
        onReply: (@Sendable (Result<[DBusValue], DBusError>) -> Void)? = nil
    ) async throws(DBusError) -> [DBusValue] {
        guard let bus, let owner else {
            throw DBusError(name: DBusError.disconnectedName, message: "bluetoothd is not on the bus")
        }
        let limit = limit ?? limits.operation
        do throws(DBusError) {
            return try await bus.call(owner, path, interface, member, arguments, timeout: limit, onReply: onReply)
        } catch {
            await renewAfterUnansweredCalls(bus)
            throw error
        }
    }

    /// Reads a device's properties into the tree.
    func refresh(_ path: String, within limit: Duration) async throws(DBusError) {
        let owner = owner
        try await call(
            path,
            BlueZ.properties,
            "GetAll",
            [.string(BlueZ.device)],
            within: limit,
            onReply: { [weak self] outcome in
                self?.assumeIsolated { central in
                    guard central.owner == owner, let all = try? outcome.get().first else { return }
                    central.apply(central.tree.refresh(path, BlueZ.device, all))
                }
            }
        )
    }

    /// Returns bluetoothd's unique name.
    ///
    /// - Throws: `serviceUnavailable` unless bluetoothd is there and its objects are known.
    func service() throws(BluetoothError) -> String {
        guard let owner, isLoaded else { throw BluetoothError(.serviceUnavailable, "bluetoothd is not on the bus") }
        return owner
    }

    func adapterPath(_ address: BluetoothAddress) throws(BluetoothError) -> String {
        _ = try service()
        guard let path = tree.adapterPath(address) else {
            throw BluetoothError(.adapterUnavailable, "there is no adapter \(address)")
        }
        return path
    }

    func devicePath(_ id: PeripheralID) throws(BluetoothError) -> String {
        _ = try adapterPath(id.adapter)
        guard let path = tree.devicePath(id) else {
            throw BluetoothError(.unknownPeripheral, "\(id.address) has not been seen, or was removed")
        }
        return path
    }

    func status(_ id: PeripheralID) throws(BluetoothError) -> PeripheralStatus {
        _ = try devicePath(id)
        guard let status = tree.status(id) else {
            throw BluetoothError(.unknownPeripheral, "\(id.address) was removed")
        }
        return status
    }

    private func isSwitchedOff(_ id: PeripheralID) -> Bool {
        guard let path = tree.adapterPath(id.adapter) else { return false }
        return tree.adapters[path]?.status?.isPowered == false
    }
}
