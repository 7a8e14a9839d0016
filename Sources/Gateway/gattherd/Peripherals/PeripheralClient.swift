import GattherdBlueZ
import GattherdBluetooth
import GattherdConfig
import GattherdDaemon
import GattherdGATT
import GattherdGateway
import GattherdYAML

/// A peripheral that a command uses.
///
/// The command uses the daemon's link if the daemon has the device, and otherwise its own.
struct PeripheralClient {
    /// The part of the commands' help about the daemon.
    static let daemonHelp = """
        If the daemon has the device, the command uses the daemon's link: nothing is subscribed twice, and no reading is stored.
        Otherwise the command connects by itself.
        """

    let address: BluetoothAddress
    /// The control socket of a daemon with the same configuration; `nil` without one.
    private let socketPath: String?
    private let bus: BluetoothBus
    private let central: Central.Configuration

    /// The exit codes of commands that connect to a peripheral.
    static let exits: [CommandFailure.Code: String] = [
        .data: "there is no such device",
        .unavailable: "bluetoothd or the peripheral cannot be reached, or refuses",
    ]

    /// - Parameters:
    ///   - who: The address, or the name of a configured device.
    ///   - arguments: The arguments, with the options `config` and `adapter`.
    /// - Throws: ``CommandFailure`` if there is no such device.
    init(_ who: String, _ arguments: Arguments) throws(CommandFailure) {
        let configuration = try Self.configuration(arguments)
        bus = Self.bus(configuration)
        socketPath = configuration?.controlSocketPath
        let devices = configuration?.devices ?? []
        let device = Self.device(who, among: devices)
        guard let address = device?.address.value ?? BluetoothAddress(anyNotation: who) else {
            throw Self.unknown(who, among: devices)
        }
        self.address = address
        central = Self.central(arguments, configuration, for: device)
        if let configuration, let device { try Self.refuseAdvertiser(device, configuration) }
    }

    /// Returns the device with a name, or else with an address in any notation.
    static func device(_ who: String, among devices: [DeviceSettings]) -> DeviceSettings? {
        let address = BluetoothAddress(anyNotation: who)
        return devices.first { $0.name.value == who } ?? devices.first { $0.address.value == address }
    }

    /// Returns the failure for a name that no device has.
    static func unknown(_ who: String, among devices: [DeviceSettings]) -> CommandFailure {
        let nearest = Spelling.nearest(to: who, among: devices.map(\.name.value))
        let question = nearest.map { "; did you mean '\($0)'?" } ?? "; write its address, or see gattherd status"
        return CommandFailure(.data, "gattherd: there is no device '\(who)'\(question)")
    }

    /// Fails for a device that only advertises: it cannot be connected.
    private static func refuseAdvertiser(
        _ device: DeviceSettings,
        _ configuration: Configuration
    ) throws(CommandFailure) {
        guard device.profiles != nil else { return }
        let isListenedTo: Bool
        do throws(ConfigErrors) {
            isListenedTo = device.isListenedTo(with: try configuration.loadProfiles())
        } catch {
            throw CommandFailure(.configuration, error.description)
        }
        guard isListenedTo else { return }
        let name = device.name.value
        throw CommandFailure(
            .data,
            "gattherd: '\(name)' only advertises, and cannot be connected; record its advertisements: "
                + "gattherd capture \(name) FILE, or see its readings: gattherd history --device \(name)"
        )
    }

    /// Returns the configuration; `nil` without one, which means the system bus.
    static func configuration(_ arguments: Arguments) throws(CommandFailure) -> Configuration? {
        let isConfigured = arguments.value("config") != nil || ConfigurationFile.isDefaultThere
        return isConfigured ? try ConfigurationFile(arguments).load().recallingEnrolled() : nil
    }

    static func central(
        _ arguments: Arguments,
        _ configuration: Configuration?,
        for device: DeviceSettings? = nil
    ) -> Central.Configuration {
        var central = Central.Configuration()
        central.adapter = Central.AdapterChoice(arguments, configuration, for: device)
        return central
    }

    static func bus(_ configuration: Configuration?) -> BluetoothBus {
        configuration.map { BluetoothBus($0.bluetooth.bus) } ?? .system
    }

    /// Connects, runs `body`, and leaves the link as it was found.
    ///
    /// - Throws: ``CommandFailure``, from `body` or for an error of Bluetooth.
    func run<Value: Sendable>(
        _ body: (GattherdBluetooth.Peripheral) async throws -> Value
    ) async throws(CommandFailure) -> Value {
        let daemon: DaemonBackend? =
            if let socketPath { try await DaemonBackend.open(address, at: socketPath) } else { nil }
        do {
            if let daemon { return try await Central(backend: daemon).run { try await use($0, body) } }
            return try await withCentral(on: bus, configuration: central) { try await use($0, body) }
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as BluetoothError where error.kind == .timedOut && error.operation == .scan {
            throw Self.silence(of: address, central)
        } catch let error as BluetoothError where error.kind == .unknownAttribute {
            let advice = "see gattherd inspect \(address)"
            throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless(error.detail)); \(advice)")
        } catch {
            throw CommandFailure(.unavailable, "gattherd: \(Terminal.harmless("\(error)"))")
        }
    }

    private func use<Value: Sendable>(
        _ central: Central,
        _ body: (GattherdBluetooth.Peripheral) async throws -> Value
    ) async throws -> Value {
        try await central.waitUntilReady()
        let wasConnected = central.connectedPeripherals().contains { $0.address == address }
        let peripheral = try await central.connect(address)
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(peripheral))
        } catch {
            result = .failure(error)
        }
        // The link may have ended already.
        let stays = wasConnected ? true : await isDaemonsNow()
        try? await stays ? central.detach(peripheral) : central.disconnect(peripheral)
        return try result.get()
    }

    /// Returns true if the daemon uses or makes a link to the device; it may have adopted the command's link.
    private func isDaemonsNow() async -> Bool {
        guard let socketPath, case .status(let status)? = try? await ControlClient.reply(to: .status, at: socketPath)
        else { return false }
        let device = status.devices.first { $0.address == address.description }
        return ["connecting", "discovering", "preparing", "ready"].contains(device?.state)
    }
}

extension PeripheralClient {
    /// Returns the failure for a peripheral that was not heard during the scan.
    static func silence(of address: BluetoothAddress, _ central: Central.Configuration) -> CommandFailure {
        let place =
            switch central.adapter {
            case .automatic: ""
            case .address(let adapter): " by adapter \(adapter)"
            case .name(let adapter): " by adapter \(adapter)"
            }
        let time = RelativeTime.length(central.connectTimeout)
        return CommandFailure(
            .unavailable,
            """
            gattherd: \(address) was not heard\(place) within \(time): check that it is on, in range and advertising, and \
            that no other device, such as a phone, is connected to it; 'gattherd scan' lists peripherals, and --adapter \
            chooses another adapter
            """
        )
    }
}

extension OptionSpec {
    /// The option of commands that connect to BlueZ themselves.
    static let adapter = OptionSpec.value(
        "adapter",
        "NAME|ADDRESS",
        "the adapter to use, for example hci1 (default: where the daemon has the device, else as configured)"
    )
}

extension Central.AdapterChoice {
    /// Chooses the adapter for a command.
    ///
    /// The order of preference: the option, the adapter of the daemon's newest link to the device, the device's
    /// configured adapter, the first configured one, the first powered one.
    init(_ arguments: Arguments, _ configuration: Configuration?, for device: DeviceSettings? = nil) {
        let configured = device?.adapter?.value ?? configuration?.bluetooth.adapters.first
        if let asked = arguments.value("adapter") {
            self = BluetoothAddress(anyNotation: asked).map { .address($0) } ?? .name(asked)
        } else if let device, let configuration,
            let present = DaemonClient(configuration).adapter(of: device.name.value)
        {
            self = .address(present)
        } else {
            self = configured.map { .address($0) } ?? .automatic
        }
    }
}

extension AdapterChoice {
    fileprivate var first: BluetoothAddress? {
        switch self {
        case .auto: nil
        case .only(let addresses): addresses.first
        }
    }
}

extension DaemonClient {
    /// Returns the adapter of the device's link; `nil` if no daemon runs or it has not connected the device yet.
    fileprivate func adapter(of device: String) -> BluetoothAddress? {
        let status = try? status().devices.first { $0.device == device }
        return status?.adapter.flatMap { BluetoothAddress($0) }
    }
}
