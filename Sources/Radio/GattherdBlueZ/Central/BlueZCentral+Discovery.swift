public import GattherdBluetooth
import GattherdDBus
public import GattherdGATT
import GattherdLog

extension BlueZCentral {
    public func startDiscovery(
        on adapter: BluetoothAddress,
        services: [BluetoothUUID]
    ) async throws(BluetoothError) {
        // A sensor that only advertises may repeat the same payload for hours, and is present nevertheless.
        let filter = DiscoveryFilter(services: Set(services), reportsDuplicates: advertisementWatch != nil)
        try await startDiscovery(on: adapter, filter: filter)
    }

    public func watch(_ advertisements: AdvertisementWatch) async {
        await unregisterMonitors()
        advertisementWatch = advertisements.addresses.isEmpty ? nil : advertisements
        tree.watchedAddresses = advertisements.addresses
        let scanning = tree.adapters.filter { $0.value.status?.isDiscovering == true }.keys.sorted()
        let filter = DiscoveryFilter(reportsDuplicates: advertisementWatch != nil)
        for path in scanning { await setFilter(path, filter) }
        await registerMonitors()
    }

    public func startDiscovery(
        on adapter: BluetoothAddress,
        filter: DiscoveryFilter
    ) async throws(BluetoothError) {
        let path = try adapterPath(adapter)
        await setFilter(path, filter)
        do throws(DBusError) {
            try await call(path, BlueZ.adapter, "StartDiscovery")
        } catch {
            // The same error stands for any refusal of the kernel's, for example in the 10 s for which it continues the
            // scan of a bluetoothd that was killed.
            let isRunning =
                error.name == "org.bluez.Error.InProgress" && tree.adapters[path]?.status?.isDiscovering == true
            guard isRunning else { throw BluetoothError(error, missing: .adapterUnavailable) }
        }
    }

    /// Sets the discovery filter: without any, BlueZ scans for classic devices too, and hides beacons.
    ///
    /// A refusal is only logged: an implementation without filters can still scan.
    private func setFilter(_ adapter: String, _ filter: DiscoveryFilter) async {
        var entries: [DBusEntry] = [
            DBusEntry(.string("Transport"), .variant(.string("le"))),
            DBusEntry(.string("DuplicateData"), .variant(.boolean(filter.reportsDuplicates))),
        ]
        if !filter.services.isEmpty {
            let uuids = DBusValue.strings(filter.services.map(\.canonical).sorted())
            entries.append(DBusEntry(.string("UUIDs"), .variant(uuids)))
        }
        do throws(DBusError) {
            let filter = DBusValue.dictionary(key: "s", value: "v", entries)
            try await call(adapter, BlueZ.adapter, "SetDiscoveryFilter", [filter])
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

    public func stopDiscovery(on adapter: BluetoothAddress) async throws(BluetoothError) {
        let path = try adapterPath(adapter)
        do throws(DBusError) {
            try await call(path, BlueZ.adapter, "StopDiscovery")
        } catch {
            let fault = BluetoothError(error, missing: .adapterUnavailable)
            let isStopped = error.name == "org.bluez.Error.Failed" || fault.kind == .adapterUnavailable
            guard isStopped else { throw fault }
        }
    }
}
