import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdLog

/// The scans that bluetoothd makes for us; on the Bluetooth thread only.
final class Discovery {
    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let log: Log
    /// True once this bluetoothd has refused a discovery filter.
    private var isFilterRefused = false
    /// The adapters on which bluetoothd may have a scan of this client.
    private var scanned: Set<BluetoothAddress> = []

    init(_ client: BluetoothdClient, _ objects: BlueZObjects, log: Log) {
        (self.client, self.objects, self.log) = (client, objects, log)
    }

    /// Starts again with another bluetoothd.
    func reset() {
        (isFilterRefused, scanned) = (false, [])
    }

    /// Records that the scan has ended, because the adapter is off or gone.
    func recordEnd(on adapter: BluetoothAddress) {
        scanned.remove(adapter)
    }

    func start(on adapter: BluetoothAddress, _ filter: DiscoveryFilter) async throws(BluetoothError) {
        let path = try objects.adapterPath(adapter)
        await setFilter(path, filter)
        do throws(DBusError) {
            try await client.call(
                path,
                BlueZ.adapter,
                "StartDiscovery",
                onReply: { [weak self] outcome in self?.recordStart(outcome, on: adapter) }
            )
        } catch {
            // BlueZ gives the same error for any refusal by the kernel, for example in the 10 s for which it continues
            // the scan of a bluetoothd that was killed. `Discovering` may be true for another client's scan, or one
            // that hangs.
            let isRunning = error.name == "org.bluez.Error.InProgress" && scanned.contains(adapter)
            guard isRunning, isDiscovering(path) else { throw BluetoothError(error, missing: .adapterUnavailable) }
        }
    }

    private func recordStart(_ outcome: Result<[DBusValue], DBusError>, on adapter: BluetoothAddress) {
        switch outcome {
        case .success: scanned.insert(adapter)
        // Without an answer, the scan may still start.
        case .failure(let error) where [DBusError.timeoutName, DBusError.cancelledName].contains(error.name):
            scanned.insert(adapter)
        case .failure: break
        }
    }

    private func isDiscovering(_ path: String) -> Bool {
        objects.tree.adapters[path]?.status?.isDiscovering == true
    }

    /// Changes the filter of all running scans.
    func setFilterOfRunning(_ filter: DiscoveryFilter) async {
        for path in objects.tree.adapters.all.keys.filter(isDiscovering).sorted() { await setFilter(path, filter) }
    }

    /// Sets the discovery filter: without one, BlueZ also scans for classic devices, and hides beacons.
    ///
    /// A refusal is only logged: an implementation without filters can still scan.
    private func setFilter(_ adapter: String, _ filter: DiscoveryFilter) async {
        do throws(DBusError) {
            try await client.call(adapter, BlueZ.adapter, "SetDiscoveryFilter", [Self.properties(of: filter)])
        } catch {
            // A warning once for each bluetoothd: a scan may be started often.
            log(
                isFilterRefused ? .debug : .warning,
                "discovery filter refused",
                [.init("adapter", adapter), .init("error", error)]
            )
            isFilterRefused = true
        }
    }

    private static func properties(of filter: DiscoveryFilter) -> DBusValue {
        .properties(["Transport": .string("le"), "DuplicateData": .boolean(filter.reportsDuplicates)])
    }

    func stop(on adapter: BluetoothAddress) async throws(BluetoothError) {
        let path = try objects.adapterPath(adapter)
        do throws(DBusError) {
            try await client.call(path, BlueZ.adapter, "StopDiscovery")
        } catch {
            let fault = BluetoothError(error, missing: .adapterUnavailable)
            let isStopped = error.name == "org.bluez.Error.Failed" || fault.kind == .adapterUnavailable
            guard isStopped else { throw fault }
        }
        recordEnd(on: adapter)
    }

    /// Switches an adapter on or off.
    func setPowered(_ isPowered: Bool, _ adapter: BluetoothAddress) async throws(BluetoothError) {
        let path = try objects.adapterPath(adapter)
        let arguments: [DBusValue] = [.string(BlueZ.adapter), .string("Powered"), .variant(.boolean(isPowered))]
        do throws(DBusError) {
            try await client.call(path, BlueZ.properties, "Set", arguments)
        } catch {
            throw BluetoothError(error, missing: .adapterUnavailable)
        }
    }
}
