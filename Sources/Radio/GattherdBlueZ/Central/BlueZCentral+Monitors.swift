import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdModel

// Passive scans: bluetoothd reports advertisements that match a pattern, without a scan of ours.
extension BlueZCentral {
    private static let monitorRoot = "/gattherd/monitor"

    /// Registers monitors with each adapter that supports them; `Activate` reports that an adapter uses them.
    func registerMonitors() async {
        guard let bus, let owner, let watch = advertisementWatch, watch.hasChangingPayloads else { return }
        for path in tree.adapters.keys.filter({ tree.isMonitorable($0) }).sorted() {
            tree.setMonitored(true, path)
            let root = Self.monitorRoot + "/" + BlueZ.name(of: path)
            let monitors = Self.monitors(of: watch, root)
            bus.exportMonitors(root, monitors, for: owner) { isActive in
                self.assumeIsolated { $0.apply($0.tree.setMonitoring(isActive, path)) }
            }
            do throws(DBusError) {
                try await call(path, BlueZ.monitorManager, "RegisterMonitor", [.objectPath(root)])
            } catch {
                log(.info, "bluetoothd does not scan passively", [.init("adapter", path), .init("error", error)])
            }
        }
    }

    /// Unregisters all monitors.
    func unregisterMonitors() async {
        for path in tree.adapters.filter({ $0.value.isMonitored }).keys.sorted() {
            tree.setMonitored(false, path)
            let root = Self.monitorRoot + "/" + BlueZ.name(of: path)
            _ = try? await call(path, BlueZ.monitorManager, "UnregisterMonitor", [.objectPath(root)])
            apply(tree.setMonitoring(false, path))
        }
    }

    /// One monitor, with a pattern for each source of the watch.
    private static func monitors(of watch: AdvertisementWatch, _ root: String) -> DBusValue {
        let patterns = watch.sources.compactMap(\.pattern).map { type, octets in
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

extension DBusConnection {
    /// Exports monitors for bluetoothd only; calls `activated` when it starts and stops using them, on the loop.
    nonisolated fileprivate func exportMonitors(
        _ root: String,
        _ monitors: DBusValue,
        for owner: String,
        _ activated: @escaping (Bool) -> Void
    ) {
        export(root, subtree: true) { call in
            // Without an answer bluetoothd does not use the monitors.
            try? Self.answer(call, monitors, for: owner, activated)
        }
    }

    private static func answer(
        _ call: DBusMethodCall,
        _ monitors: DBusValue,
        for owner: String,
        _ activated: (Bool) -> Void
    ) throws(DBusError) {
        guard call.sender == owner else {
            let name = "org.freedesktop.DBus.Error.AccessDenied"
            return try call.fail(DBusError(name: name, message: "only bluetoothd may call this"))
        }
        switch (call.interface, call.member) {
        case (BlueZ.objectManager, "GetManagedObjects"): return try call.reply(monitors)
        case (BlueZ.monitor, "Activate"): activated(true)
        case (BlueZ.monitor, "Release"): activated(false)
        case (BlueZ.monitor, "DeviceFound"), (BlueZ.monitor, "DeviceLost"): break
        default: return try call.failUnknownMethod()
        }
        try call.reply()
    }
}

extension AdvertisementSource {
    /// The AD type and its first bytes; `nil` for a UUID that has no pattern.
    fileprivate var pattern: (type: UInt8, octets: [UInt8])? {
        switch self {
        case .manufacturer(let company): (0xFF, [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)])
        case .serviceData(let uuid):
            uuid.assigned16.map { (0x16, [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)]) }
        }
    }
}
