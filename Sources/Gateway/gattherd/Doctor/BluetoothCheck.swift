import GattherdBlueZ
import GattherdConfig
import GattherdDBus
import GattherdGateway
import GattherdSync

/// Findings about the bus, bluetoothd and its adapters.
struct BluetoothCheck {
    private static let answerTimeout = Duration.seconds(5)

    private let bus: BusChoice
    private let facts: HostFacts

    init(_ bus: BusChoice, _ facts: HostFacts) {
        self.bus = bus
        self.facts = facts
    }

    func findings() async -> [DoctorFinding] {
        let loop = EventLoop(name: "doctor")
        defer { loop.stop() }
        let address = BluetoothBus(bus).location
        do throws(DBusError) {
            let connection = try await DBusConnection.open(address, on: loop, timeout: Self.answerTimeout)
            var findings = [DoctorFinding.good("bus", "the bus at \(address) answers")]
            findings += await bluetoothd(connection)
            if case .system = bus { findings += await UnitCheck(connection).findings() }
            await connection.close()
            return findings
        } catch {
            return [BusProblem(error, facts, at: address).unreachable]
        }
    }

    private func bluetoothd(_ connection: DBusConnection) async -> [DoctorFinding] {
        do throws(DBusError) {
            let reply = try await connection.call(
                "org.bluez",
                "/",
                "org.freedesktop.DBus.ObjectManager",
                "GetManagedObjects",
                timeout: Self.answerTimeout
            )
            let adapters = BluezAdapter.all(in: reply.first)
            return [.good("bluetoothd", "bluetoothd answers")] + AdapterCheck(adapters, facts).findings
        } catch {
            let problem = BusProblem(error, facts, at: BluetoothBus(bus).location).noService
            return AdapterCheck.withoutService(problem)
        }
    }
}

/// The properties of an adapter in BlueZ.
struct BluezAdapter: Hashable {
    var name = ""
    var address = ""
    var isPowered = false
    /// True for the role 'central'; `nil` if bluetoothd is too old to report roles, or the adapter has no LE.
    var isCentral: Bool?

    /// Returns the adapters in a reply of GetManagedObjects.
    static func all(in objects: DBusValue?) -> [Self] {
        (objects?.entries ?? []).compactMap { object in
            let interfaces = object.value.entries ?? []
            guard let properties = interfaces.first(where: { $0.key.string == "org.bluez.Adapter1" })?.value.entries
            else { return nil }
            var adapter = Self()
            adapter.name = String(object.key.string?.split(separator: "/").last ?? "")
            for property in properties {
                switch property.key.string {
                case "Address": adapter.address = property.value.string ?? ""
                case "Powered": adapter.isPowered = property.value.bool ?? false
                case "Roles": adapter.isCentral = property.value.elements?.contains { $0.string == "central" }
                default: break
                }
            }
            return adapter
        }
    }
}

/// Findings about the adapters.
struct AdapterCheck {
    private let adapters: [BluezAdapter]
    private let kernel: [String]
    private let facts: HostFacts

    /// - Parameters:
    ///   - adapters: The adapters of bluetoothd.
    ///   - facts: The host or container.
    ///   - kernel: The kernel's adapters.
    init(_ adapters: [BluezAdapter], _ facts: HostFacts, kernel: [String] = KernelRadio.kernelAdapters()) {
        self.adapters = adapters
        self.facts = facts
        self.kernel = kernel
    }

    var findings: [DoctorFinding] {
        guard adapters.isEmpty else { return adapters.sorted { $0.name < $1.name }.map(finding) }
        if !kernel.isEmpty {
            let names = kernel.joined(separator: ", ")
            let text = "the kernel has \(names), but bluetoothd does not show it"
            return [
                DoctorFinding("adapter", .error, text, remedy: "systemctl restart bluetooth; dmesg | grep -i bluetooth")
            ]
        }
        return [Self.missing("there is no Bluetooth adapter")]
    }

    /// Returns the findings if bluetoothd does not answer: without an adapter, systemd does not start it.
    static func withoutService(
        _ problem: DoctorFinding,
        kernel: [String] = KernelRadio.kernelAdapters()
    ) -> [DoctorFinding] {
        guard problem.check == "bluetoothd", kernel.isEmpty else { return [problem] }
        return [missing("the kernel has no Bluetooth adapter; systemd starts bluetoothd when there is one"), problem]
    }

    private static func missing(_ text: String) -> DoctorFinding {
        let advice =
            "plug one in, or enable it (Raspberry Pi: no dtoverlay=disable-bt); dmesg | grep -i bluetooth says more"
        return DoctorFinding("adapter", .error, text, remedy: advice)
    }

    private func finding(_ adapter: BluezAdapter) -> DoctorFinding {
        let name = "\(adapter.name) (\(adapter.address))"
        if adapter.isCentral == false {
            let text = "\(name) cannot connect to LE peripherals: it lacks the role 'central'"
            return DoctorFinding("adapter", .error, text, remedy: "use an adapter with Bluetooth 4.0 or later")
        }
        guard adapter.isPowered else {
            let advice = "bluetoothctl power on; AutoEnable=true in /etc/bluetooth/main.conf keeps it so"
            return DoctorFinding(
                "adapter",
                .warning,
                "\(name) is off",
                remedy: advice
            )
        }
        let twin = adapters.first { $0.name != adapter.name && $0.address == adapter.address }
        if let twin {
            let advice = "unplug one of them, or give one another address (such clones exist); only one is used"
            return DoctorFinding("adapter", .warning, "\(name) has the same address as \(twin.name)", remedy: advice)
        }
        return .good("adapter", "\(name) is on")
    }
}
