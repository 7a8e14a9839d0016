import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdModel

// Passive scans: bluetoothd tells of advertisements that fit a pattern, without a scan of ours.
extension BlueZCentral {
    private static let monitorRoot = "/gattherd/monitor"

    /// Asks each adapter that can to look for what is wanted; those that begin with it tell so by `Activate`.
    func registerMonitors() async {
        guard let bus, let owner, let watch, watch.changesByItself else { return }
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

    /// Takes back what was asked for.
    func unregisterMonitors() async {
        for path in tree.adapters.filter({ $0.value.isMonitored }).keys.sorted() {
            tree.setMonitored(false, path)
            let root = Self.monitorRoot + "/" + BlueZ.name(of: path)
            _ = try? await call(path, BlueZ.monitorManager, "UnregisterMonitor", [.objectPath(root)])
            apply(tree.setMonitoring(false, path))
        }
    }

    /// One monitor, of a pattern for each place that is wanted.
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
    /// Exports monitors for bluetoothd and nobody else, and tells when it begins and ends to use them; on the loop.
    nonisolated fileprivate func exportMonitors(
        _ root: String,
        _ monitors: DBusValue,
        for owner: String,
        _ note: @escaping (Bool) -> Void
    ) {
        export(root, subtree: true) { call in
            // What cannot be said is not answered; bluetoothd does without the monitors then.
            try? Self.answer(call, monitors, for: owner, note)
        }
    }

    private static func answer(
        _ call: DBusMethodCall,
        _ monitors: DBusValue,
        for owner: String,
        _ note: (Bool) -> Void
    ) throws(DBusError) {
        guard call.sender == owner else {
            let name = "org.freedesktop.DBus.Error.AccessDenied"
            return try call.fail(DBusError(name: name, message: "only bluetoothd may ask"))
        }
        switch (call.interface, call.member) {
        case (BlueZ.objectManager, "GetManagedObjects"): return try call.reply(monitors)
        case (BlueZ.monitor, "Activate"): note(true)
        case (BlueZ.monitor, "Release"): note(false)
        case (BlueZ.monitor, "DeviceFound"), (BlueZ.monitor, "DeviceLost"): break
        default: return try call.failUnknownMethod()
        }
        try call.reply()
    }
}

extension AdvertisementSource {
    /// The AD type, and how its data begin; `nil` for a UUID that BlueZ is not asked for.
    fileprivate var pattern: (type: UInt8, octets: [UInt8])? {
        switch self {
        case .manufacturer(let company): (0xFF, [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)])
        case .serviceData(let uuid):
            uuid.assigned16.map { (0x16, [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)]) }
        }
    }
}
