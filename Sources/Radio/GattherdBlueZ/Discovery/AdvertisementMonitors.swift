import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdModel

/// Passive scans: bluetoothd reports advertisements that match a pattern, without our own scan.
///
/// On the Bluetooth thread only.
final class AdvertisementMonitors {
    private static let rootPath = "/gattherd/monitor"

    private let client: BluetoothdClient
    private let objects: BlueZObjects
    private let log: Log
    /// The current advertisement subscription, if any.
    private(set) var watch: AdvertisementWatch?

    init(_ client: BluetoothdClient, _ objects: BlueZObjects, log: Log) {
        (self.client, self.objects, self.log) = (client, objects, log)
    }

    /// Replaces the watched advertisements; the monitors must be registered again.
    func setWatch(_ advertisements: AdvertisementWatch) {
        // The new sink may be another one, or none.
        watch?.sink.flush()
        watch = advertisements.addresses.isEmpty && !advertisements.includesAll ? nil : advertisements
        objects.edit { $0.reports.watch = advertisements }
    }

    /// Registers monitors with each adapter that supports them; `Activate` reports that an adapter uses them.
    ///
    /// The watch may be replaced meanwhile: each adapter has the patterns of the newest one.
    func register() async {
        for path in objects.tree.adapters.all.keys.sorted() {
            guard let watch, watch.hasChangingPayloads, let owner = client.owner else { return }
            guard objects.tree.adapters.isMonitorable(path) else { continue }
            objects.edit { $0.setMonitored(true, path) }
            export(Self.monitors(of: watch, Self.root(of: path)), of: path, for: owner)
            await registerMonitors(with: path)
        }
    }

    private func registerMonitors(with adapter: String) async {
        do throws(DBusError) {
            let root = DBusValue.objectPath(Self.root(of: adapter))
            try await client.call(adapter, BlueZ.monitorManager, "RegisterMonitor", [root])
        } catch {
            log(.info, "bluetoothd does not scan passively", [.init("adapter", adapter), .init("error", error)])
        }
    }

    /// Unregisters all monitors.
    func unregister() async {
        for path in objects.tree.adapters.all.filter({ $0.value.isMonitored }).keys.sorted() {
            objects.edit { $0.setMonitored(false, path) }
            // Others may register the adapter's next monitors before the answer.
            objects.update { $0.setMonitoring(false, path) }
            let root = DBusValue.objectPath(Self.root(of: path))
            _ = try? await client.call(path, BlueZ.monitorManager, "UnregisterMonitor", [root])
        }
    }

    private static func root(of adapter: String) -> String {
        rootPath + "/" + BlueZ.name(of: adapter)
    }

    // MARK: - Exported objects

    /// Exports the monitors of an adapter.
    private func export(_ monitors: DBusValue, of adapter: String, for owner: String) {
        client.bus?.export(Self.root(of: adapter), subtree: true, for: owner) {
            [weak self] (call) throws(DBusError) in
            switch (call.interface, call.member) {
            case (BlueZ.objectManager, "GetManagedObjects"): return try call.reply(monitors)
            case (BlueZ.monitor, "Activate"): self?.objects.update { $0.setMonitoring(true, adapter) }
            case (BlueZ.monitor, "Release"): self?.objects.update { $0.setMonitoring(false, adapter) }
            case (BlueZ.monitor, "DeviceFound"), (BlueZ.monitor, "DeviceLost"): break
            default: return try call.failUnknownMethod()
            }
            try call.reply()
        }
    }

    /// One monitor, with a pattern for each source of the watch.
    private static func monitors(of watch: AdvertisementWatch, _ root: String) -> DBusValue {
        let patterns = watch.sources.map(\.pattern).map { type, octets in
            DBusValue.structure([.byte(0), .byte(type), .bytes(octets)])
        }
        let properties = DBusValue.properties([
            "Type": .string("or_patterns"), "RSSISamplingPeriod": .uint16(0),
            "Patterns": .array(element: "(yyay)", patterns),
        ])
        let interfaces = DBusValue.dictionary(
            key: "s",
            value: "a{sv}",
            [DBusEntry(.string(BlueZ.monitor), properties)]
        )
        return .dictionary(key: "o", value: "a{sa{sv}}", [DBusEntry(.objectPath(root + "/0"), interfaces)])
    }
}

extension AdvertisementSource {
    /// The AD type and its first bytes: Core Specification Supplement, Part A, "Service Data".
    fileprivate var pattern: (type: UInt8, octets: [UInt8]) {
        switch self {
        case .manufacturer(let company): return (0xFF, [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)])
        case .serviceData(let uuid):
            let octets = uuid.shortestOctets
            return (octets.count == 2 ? 0x16 : octets.count == 4 ? 0x20 : 0x21, octets)
        }
    }
}
