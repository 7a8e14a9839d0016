import GattherdBluetooth
import GattherdConfig
import GattherdGATT

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
            self = BluetoothAddress(asked).map { .address($0) } ?? .name(asked)
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
